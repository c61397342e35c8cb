"""Responses that turns continue."""

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


def test_a_first_turn() -> None:
    assert links(calls(("resp_1", ""))) == (("resp_1",), "")


def test_a_next_turn() -> None:
    assert links(calls(("resp_2", "resp_1"))) == (("resp_2",), "resp_1")


def test_what_was_answered_within_the_trace_is_not_left() -> None:
    assert links(calls(("resp_2", "resp_1"), ("resp_3", "resp_2"), ("resp_4", "resp_3"))) == (("resp_4",), "resp_1")


def test_calls_that_send_the_whole_input_are_all_left_the_last_one_last() -> None:
    assert links(calls(("resp_1", ""), ("resp_2", ""))) == (("resp_1", "resp_2"), "")


def test_the_first_call_that_has_a_predecessor_outside_counts() -> None:
    assert links(calls(("resp_2", ""), ("resp_3", "resp_1"), ("resp_4", "resp_0"))) == (
        ("resp_2", "resp_3", "resp_4"),
        "resp_1",
    )


def test_the_last_ones_are_kept() -> None:
    many = [(f"resp_{number}", "") for number in range(MAX_GIVEN + 3)]
    assert links(calls(*many))[0] == tuple(name for name, _ in many[3:])


def test_an_agent_that_repeats_its_last_response_changes_nothing() -> None:
    spans = Spans()
    agent = spans.agent(response_id="resp_2", previous_response_id="resp_0")
    spans.llm(agent, response_id="resp_1", previous_response_id="resp_0")
    spans.llm(agent, response_id="resp_2")
    assert links(spans) == (("resp_1", "resp_2"), "resp_0")


@pytest.mark.parametrize("id_", ["chatcmpl-1", "msg_1", "7d0e2d3c"])
def test_ids_of_providers_that_keep_nothing(id_: str) -> None:
    assert links(calls((id_, ""))) == ((), "")


def test_any_id_counts_of_a_call_that_goes_on_from_another() -> None:
    assert links(calls(("7d0e2d3c", "ad5663da"))) == (("7d0e2d3c",), "ad5663da")


def test_a_response_that_goes_on_from_itself() -> None:
    assert links(calls(("resp_1", "resp_1"))) == ((), "")


def test_a_loop() -> None:
    assert links(calls(("resp_1", "resp_2"), ("resp_2", "resp_1"))) == ((), "")


def test_ids_that_may_have_been_cut_are_not_compared() -> None:
    long = "resp_" + "x" * 300
    assert links(calls((long[:256], ""))) == ((), "")
    assert links(calls(("resp_1", long[:256]))) == (("resp_1",), "")


def test_what_names_its_session_goes_on_from_nothing() -> None:
    spans = Spans()
    agent = spans.agent(session_ids=((2, "chat"),))
    spans.llm(agent, response_id="resp_2", previous_response_id="resp_1")
    spans.llm(agent, response_id="resp_3", previous_response_id="resp_0")
    assert links(spans) == (("resp_3",), "")


def test_the_judges_of_somebody_else_are_no_part_of_it() -> None:
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
def test_in_every_dialect_and_it_shows_in_the_bytes(attributes: dict[str, Any], continues: str) -> None:
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
def test_what_is_no_id_is_none(value: Any) -> None:
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
