"""Links between turns through response IDs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.session import MAX_GIVEN, may_continue
from pandaeval_otel.normal.trace import Closing, build_trace, trace_of
from pandaeval_otel.wire.splitting import split_traces
from support.chained import turn
from tests.support.builders import Spans


def links(spans: Spans) -> tuple[tuple[str, ...], str]:
    trace = trace_of(spans(), "digest", Closing())
    return trace.responses, trace.continues


def calls(*pairs: tuple[str, str]) -> Spans:
    spans = Spans()
    agent = spans.agent()
    for response, previous in pairs:
        spans.llm(agent, response_id=response, previous_response_id=previous)
    return spans


def test_first_turn_continues_no_response() -> None:
    assert links(calls(("resp_1", ""))) == (("resp_1",), "")


def test_next_turn_continues_the_previous_response() -> None:
    assert links(calls(("resp_2", "resp_1"))) == (("resp_2",), "resp_1")


def test_response_continued_within_the_trace_is_not_listed() -> None:
    assert links(calls(("resp_2", "resp_1"), ("resp_3", "resp_2"), ("resp_4", "resp_3"))) == (("resp_4",), "resp_1")


def test_responses_without_a_predecessor_are_all_listed_in_order() -> None:
    assert links(calls(("resp_1", ""), ("resp_2", ""))) == (("resp_1", "resp_2"), "")


def test_trace_continues_the_first_previous_response_from_outside() -> None:
    assert links(calls(("resp_2", ""), ("resp_3", "resp_1"), ("resp_4", "resp_0"))) == (
        ("resp_2", "resp_3", "resp_4"),
        "resp_1",
    )


def test_only_the_last_responses_up_to_the_limit_are_kept() -> None:
    many = [(f"resp_{number}", "") for number in range(MAX_GIVEN + 3)]
    assert links(calls(*many))[0] == tuple(name for name, _ in many[3:])


def test_response_ids_of_an_agent_span_change_nothing() -> None:
    spans = Spans()
    agent = spans.agent(response_id="resp_2", previous_response_id="resp_0")
    spans.llm(agent, response_id="resp_1", previous_response_id="resp_0")
    spans.llm(agent, response_id="resp_2")
    assert links(spans) == (("resp_1", "resp_2"), "resp_0")


@pytest.mark.parametrize("id_", ["chatcmpl-1", "msg_1", "7d0e2d3c"])
def test_response_ids_of_stateless_providers_are_ignored(id_: str) -> None:
    assert links(calls((id_, ""))) == ((), "")


def test_any_id_format_is_accepted_if_the_call_has_a_previous_response() -> None:
    assert links(calls(("7d0e2d3c", "ad5663da"))) == (("7d0e2d3c",), "ad5663da")


def test_response_that_continues_itself_is_ignored() -> None:
    assert links(calls(("resp_1", "resp_1"))) == ((), "")


def test_responses_that_continue_each_other_are_ignored() -> None:
    assert links(calls(("resp_1", "resp_2"), ("resp_2", "resp_1"))) == ((), "")


def test_ids_that_may_be_truncated_are_ignored() -> None:
    long = "resp_" + "x" * 300
    assert links(calls((long[:256], ""))) == ((), "")
    assert links(calls(("resp_1", long[:256]))) == (("resp_1",), "")


def test_trace_with_a_session_id_continues_no_response() -> None:
    spans = Spans()
    agent = spans.agent(session_ids=((2, "chat"),))
    spans.llm(agent, response_id="resp_2", previous_response_id="resp_1")
    spans.llm(agent, response_id="resp_3", previous_response_id="resp_0")
    assert links(spans) == (("resp_3",), "")


def test_model_calls_of_evaluations_are_not_linked() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.llm(agent, response_id="resp_1")
    spans.llm(spans.add(Kind.EVALUATION, agent), response_id="resp_9", previous_response_id="resp_8")
    assert links(spans) == (("resp_1",), "")


@pytest.mark.parametrize(
    ("attributes", "continues"),
    [
        ({"gen_ai.request.previous_response.id": "resp_1"}, "resp_1"),
        ({"gen_ai.request.previous_response.id": "ad5663da"}, "ad5663da"),
        ({"gen_ai.request.previous_response.id": 7}, "7"),
        ({"gen_ai.request.previous_response.id": ""}, ""),
        ({"gen_ai.conversation.id": "resp_1"}, "resp_1"),
        ({"gen_ai.conversation.id": "  resp_1"}, "resp_1"),
        ({"llm.invocation_parameters": '{"previous_response_id":"resp_1"}'}, "resp_1"),
        ({"output.value": '{"id": "resp_2", "previous_response_id": "resp_1"}'}, "resp_1"),
        ({"output.value": '{"id": "resp_2", "previous_response_id": null}'}, ""),
    ],
    ids=str,
)
def test_previous_response_id_is_read_in_each_dialect_and_detected_in_raw_bytes(
    attributes: dict[str, Any], continues: str
) -> None:
    made = turn(1)
    call = made.spans[0]
    kind = "openinference.span.kind" if any("." in key and not key.startswith("gen_ai") for key in attributes) else ""
    for key, value in (attributes | ({kind: "LLM"} if kind else {})).items():
        held = call.attributes.add(key=key).value
        if isinstance(value, int):
            held.int_value = value
        else:
            held.string_value = value
    found = built(made.request().SerializeToString())
    assert found.continues == continues
    assert may_continue(made.request().SerializeToString()) is bool(
        continues or "previous_response.id" in str(attributes)
    )


@pytest.mark.parametrize("value", [["resp_1"], {"id": "resp_1"}, True, 0.5])
def test_invalid_previous_response_ids_are_ignored(value: Any) -> None:
    made = turn(1)
    held = made.spans[0].attributes.add(key="gen_ai.request.previous_response.id").value
    if isinstance(value, bool):
        held.bool_value = value
    elif isinstance(value, float):
        held.double_value = value
    else:
        held.array_value.values.add().string_value = json.dumps(value)
    assert built(made.request().SerializeToString()).continues == ""


def built(request: bytes) -> Trace:
    found = build_trace(gather((each.logs, each.chunk) for each in split_traces(request).fragments))
    assert found is not None
    return found
