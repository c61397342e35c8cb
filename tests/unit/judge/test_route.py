"""Request parameters of models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.judge.call import JudgeConfig, answer_parameters, room
from pandaeval_collector.judge.known_models import FREE, KnownModel, record_budget
from pandaeval_collector.judge.route import Route

SETUP = JudgeConfig(("m",), timeout=5.0)
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


def _call(**fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "s" * 1600},
        {"role": "user", "content": "a" * 1000},
        {"role": "user", "content": "r" * 4000},
        {"role": "user", "content": "q"},
    ]
    call = {"model": "m", "messages": messages, "max_tokens": 900, "response_format": SCHEMA, "cache_key": "desk"}
    return {**call, **fields}


def _route(known: KnownModel | None = None, **parameters: Any) -> Route:
    return Route(replace(SETUP, parameters=parameters), "m", known or KnownModel())


def _sent(known: KnownModel | None = None, *, more: bool = False, **parameters: Any) -> dict[str, Any]:
    route = _route(known, **parameters)
    call = _call(more=more)
    return route.request(call, route.form(call))


def test_a_reasoning_model_gets_more_tokens_by_default() -> None:
    assert _sent()["max_tokens"] == 900
    assert _sent(KnownModel(FREE, reasons=True))["max_tokens"] >= 900 + 1000
    assert _sent(KnownModel(FREE, reasons=True), max_tokens=700)["max_tokens"] == 700


def test_a_truncated_answer_gets_more_tokens_within_the_limits_of_the_model() -> None:
    assert _sent(more=True)["max_tokens"] >= 900 + 8000
    assert _sent(KnownModel(FREE, most_out=4096), more=True)["max_tokens"] == 4096
    assert _sent(KnownModel(FREE, window=8192), more=True)["max_tokens"] < 8192 - 1400, (
        "the prompt is in the window too"
    )
    assert _sent(max_tokens=500, more=True)["max_tokens"] > 500


@pytest.mark.parametrize("effort", ["minimal", "low", "medium", "high"])
def test_reasoning_effort_adds_tokens_and_removes_the_temperature(effort: str) -> None:
    sent = _sent(reasoning_effort=effort)
    assert sent["reasoning_effort"] == effort
    assert sent["max_tokens"] >= 900 + 1024
    assert "temperature" not in sent
    assert _sent()["temperature"] == 0.0


def test_a_model_that_used_reasoning_tokens_gets_more_tokens_afterwards() -> None:
    route = _route()
    route.thought({"usage": {"reasoning_tokens": 1500}})
    assert route.request(_call(), "")["max_tokens"] >= 2400


def test_parameters_are_added_and_null_removes_a_parameter() -> None:
    sent = _sent(top_p=0.5, temperature=None)
    assert sent["top_p"] == 0.5
    assert "temperature" not in sent


def test_questions_request_json_and_repair_calls_request_their_schema() -> None:
    assert _sent()["response_format"] == {"type": "json_object"}
    route = _route()
    assert route.form(_call(held=True)) == "json_schema"
    assert _sent(response_format={"type": "json_schema"})["response_format"] == SCHEMA
    assert "response_format" not in _sent(response_format={"type": "text"})


def test_a_refused_response_format_is_not_requested_again() -> None:
    route = _route()
    assert route.weaker("json_object") == ""
    route.took("json_object", "")
    assert route.form(_call()) == ""
    assert route.form(_call(held=True)) == "json_schema"
    route.took("json_schema", "")
    assert route.form(_call(held=True)) == ""
    fine = _route()
    fine.took("json_object", "json_object")
    assert fine.weaker("json_object") is None, "the refusal has another cause"


def test_cache_points_are_set_if_the_provider_needs_them() -> None:
    marks = KnownModel(FREE, marks=True)
    points = [{"location": "message", "index": index} for index in (1, 2)]
    assert _sent(marks)["cache_control_injection_points"] == points
    assert "cache_control_injection_points" not in _sent()
    short = [{"role": "user", "content": "q"}] * 4
    assert "cache_control_injection_points" not in _route(marks).request(_call(messages=short), ""), "below any minimum"
    merged = _route(marks)
    assert merged.adapt("roles must alternate")
    assert "cache_control_injection_points" not in merged.request(_call(), "")


def test_calls_have_the_cache_key_of_their_agent_if_the_provider_uses_it() -> None:
    keyed = KnownModel(FREE, keyed=True)
    assert _sent(keyed)["prompt_cache_key"] == "desk"
    own = Route(replace(SETUP, api_base="http://127.0.0.1:9/v1"), "m", keyed)
    assert "prompt_cache_key" not in own.request(_call(), ""), "a self-hosted server may not support it"
    assert "prompt_cache_key" not in _sent()


def test_the_record_budget_fits_into_the_context_window() -> None:
    assert record_budget(None, 900) == record_budget(127_999, 900) == 12_000
    assert record_budget(128_000, 900) == record_budget(1_000_000, 900) == 32_000
    assert 2_000 < record_budget(8_192, 900) < 6_000
    assert record_budget(1_000, 900) == 400
    assert Route(replace(SETUP, context_tokens=5_000), "m", KnownModel(FREE, window=8_192)).budget == 5_000


def test_only_parameters_that_change_answers_are_part_of_the_cache_key() -> None:
    assert answer_parameters({}) == answer_parameters({"max_tokens": 5, "response_format": {"type": "text"}}) == ""
    assert answer_parameters({"reasoning_effort": "low"}) != answer_parameters({"top_p": 1}) != ""


def test_an_answer_gets_at_least_one_token() -> None:
    assert room(900, {}, reasons=False, most=0) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "System role not supported",
        "this model does not support system messages",
        "Error in chat template: unexpected role",
    ],
)
def test_messages_are_merged_if_the_chat_template_refuses_their_roles(refusal: str) -> None:
    route = _route()
    assert route.adapt(refusal)
    [message] = route.request(_call(), "")["messages"]
    assert message == {"role": "user", "content": f"{'s' * 1600}\n\n{'a' * 1000}\n\n{'r' * 4000}\n\nq"}
    assert not route.adapt(refusal), "there is no further fallback"


def test_refused_parameters_are_removed_or_renamed() -> None:
    route = _route()
    assert not route.adapt("the temperature of the server room is 40")
    assert route.adapt("Unsupported value: 'temperature' does not support 0.0 with this model")
    assert route.adapt("Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens'")
    sent = route.request(_call(), "")
    assert "temperature" not in sent
    assert (sent.get("max_tokens"), sent["max_completion_tokens"]) == (None, 900)
    assert not route.adapt("Unsupported parameter: 'max_tokens'")
