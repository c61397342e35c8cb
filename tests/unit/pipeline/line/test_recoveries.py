"""Admitted failures pass if a later trace repairs them."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.ferry_desk import MS, message, span
from support.line import RunningPipeline, as_file
from support.made_traces import START_NS, MadeTrace
from support.two_lines import QUIET, UNSHARED


def trace(number: int, answer: str, *results: str) -> MadeTrace:
    """Return a turn with a ``book_ferry`` call per result."""
    trace_id, start = number.to_bytes(16, "big"), START_NS + number * 1000 * MS
    root = span(trace_id, 0, b"", "invoke_agent desk", start, 90, {"gen_ai.operation.name": "invoke_agent"})
    for key, value in (("gen_ai.agent.name", "desk"), ("gen_ai.conversation.id", "s")):
        root.attributes.add(key=key).value.string_value = value
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": message("user", "Please book it.")}
    attributes["gen_ai.output.messages"] = message("assistant", answer)
    spans = [span(trace_id, 1, root.span_id, "chat m", start + MS, 50, attributes)]
    for place, result in enumerate(results, 2):
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book_ferry"}
        called |= {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": result}
        spans.append(span(trace_id, place, root.span_id, "execute_tool book_ferry", start + 60 * MS, 10, called))
    return MadeTrace(trace_id, "s", "shop", (*spans, root))


FAILED = trace(1, "I could not book it, the harbour's system is down.", "Error: the service is not available")
CLAIMED = trace(1, "It is booked.", "Error: the service is not available")
TALK, BOOKED, AGAIN = trace(2, "Let me try again soon."), trace(3, "Booked.", "ok"), trace(4, "Again.", "ok")


def scattered(number: int, *, call: str = "w1", told: bool = False, answer: str = "", session: str = "s") -> MadeTrace:
    """Return an unnested step: request, result or answer."""
    trace_id, start = number.to_bytes(16, "big"), START_NS + number * 1000 * MS
    request = {"role": "assistant", "parts": [{"type": "tool_call", "id": call, "name": "find", "arguments": {"a": 1}}]}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": call, "response": "26 units"}]}
    asked = json.loads(message("user", "Where are 26 units?"))
    if told:
        ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find", "gen_ai.conversation.id": session}
        ran |= {"gen_ai.tool.call.id": call, "gen_ai.tool.call.arguments": '{"a": 1}'}
        ran |= {"gen_ai.tool.call.result": "26 units"}
        return MadeTrace(trace_id, session, "shop", (span(trace_id, 0, b"", "execute_tool find", start, 50, ran),))
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": session}
    attributes["gen_ai.input.messages"] = json.dumps([*asked, request, result] if answer else asked)
    attributes["gen_ai.output.messages"] = message("assistant", answer) if answer else json.dumps([request])
    if answer:
        return MadeTrace(trace_id, session, "shop", (span(trace_id, 0, b"", "chat m", start, 90, attributes),))
    root = span(trace_id, 0, b"", "invoke_agent desk", start, 90, {"gen_ai.operation.name": "invoke_agent"})
    root.attributes.add(key="gen_ai.agent.name").value.string_value = "desk"
    model = span(trace_id, 1, root.span_id, "chat m", start + MS, 50, attributes)
    return MadeTrace(trace_id, session, "shop", (model, root))


ASKED, RAN, ANSWERED = scattered(1), scattered(2, told=True), scattered(3, answer="Aker has 26 units.")


def response(line: RunningPipeline, of: MadeTrace) -> dict[str, Any]:
    return line.of(of, "response")[-1]


@pytest.mark.parametrize("order", [*permutations((FAILED, TALK, BOOKED))])
async def test_a_failure_that_a_later_trace_repaired_passes_in_any_order(
    tmp_path: Path, order: tuple[MadeTrace, ...]
) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in order:
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        found = response(line, FAILED)
        assert (found["score"], found["success"], found["label"]) == (0.5, True, "pass")
        assert found["metadata"]["recovered_by"] == BOOKED.trace_id.hex()
        assert found["reason"].endswith("a later trace of the session recovered")
        assert line.standing() == as_file([FAILED, TALK, BOOKED])


async def test_a_repair_is_reported_once_across_restarts(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in (FAILED, BOOKED, AGAIN, trace(5, "Fine.")):
            await line.send(each)
            await line.wait(QUIET)
            await line.restart()
        assert [each["score"] for each in line.of(FAILED, "response")] == [0.4, 0.5]


@pytest.mark.parametrize(
    ("traces", "score"),
    [
        ((FAILED, TALK), 0.4),
        ((FAILED, trace(2, "Still down.", "Error: the service is not available")), 0.4),
        ((CLAIMED, BOOKED), 0.0),  # a false success stays a failure
        ((FAILED, *(trace(2 + at, "Hm.") for at in range(3)), trace(9, "Booked.", "ok")), 0.4),  # too late
    ],
)
async def test_false_success_and_missing_failed_or_late_repairs_stay_failures(
    tmp_path: Path, traces: tuple[MadeTrace, ...], score: float
) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in traces:
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        assert response(line, traces[0])["score"] == score
        assert line.standing() == as_file([*traces])


async def test_a_failure_is_not_repaired_if_sessions_are_not_shared(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path, settings=UNSHARED) as line:
        for each in (FAILED, BOOKED):
            await line.send(each)
            await line.wait(QUIET)
        assert [each["score"] for each in line.of(FAILED, "response")] == [0.4]


@pytest.mark.parametrize("order", [*permutations((ASKED, RAN, ANSWERED))])
async def test_a_call_that_a_later_trace_answers_is_not_dangling(tmp_path: Path, order: tuple[MadeTrace, ...]) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in order:
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        found = response(line, ASKED)
        assert (found["score"], found["success"], found["label"]) == (1.0, True, "pass")
        assert found["metadata"]["continued_by"] == RAN.trace_id.hex()
        assert found["reason"] == "a later trace of the session answers the last call, find"
        blamed = line.of(ASKED, "blame")
        assert not blamed or blamed[-1]["metadata"]["taken_back"], "no failure is left to explain"
        assert line.standing() == as_file([ASKED, RAN, ANSWERED])
        sessions = [each for each in line.results() if each["metric"] == "agent_reliability"]
        assert (sessions[-1]["agent"], sessions[-1]["score"]) == ("desk", 1.0), "its last trace has no name"


@pytest.mark.parametrize(
    "later",
    [
        (ASKED,),
        (ASKED, scattered(2, call="w2", told=True)),
        (ASKED, scattered(2, told=True, session="other")),
        (ASKED, scattered(2)),  # called again, and not answered
    ],
)
async def test_a_call_without_an_answer_in_the_session_is_dangling(
    tmp_path: Path, later: tuple[MadeTrace, ...]
) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in later:
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        assert response(line, ASKED)["label"] == "dangling_tool_call"
