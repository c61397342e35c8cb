"""What a trace says is looked for in the earlier traces of its session, where its spans do not repeat them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES
from support.line import RunningLine, as_file
from support.made_traces import START_NS, MadeTrace
from support.two_lines import QUIET, two

_MS = 10**6
KNOWN, INVENTED = "KO-7731", "QX-4418"
BOOKED = {"sailing": KNOWN, "harbour": "Oslo"}


def trace(
    number: int,
    answer: str,
    *,
    result: Any = None,
    asks: str = "And now?",
    captured: bool = True,
    session: str | None = "s",
) -> MadeTrace:
    """One turn: a model call that shows the user's message alone, perhaps a call of a tool, and the answer."""
    trace_id, start = number.to_bytes(16, "big"), START_NS + number * 1000 * _MS
    root = _span(trace_id, 0, b"", "invoke_agent desk", start, 90, {"gen_ai.operation.name": "invoke_agent"})
    for key, value in (("gen_ai.agent.name", "desk"), ("gen_ai.conversation.id", session)):
        if value is not None:
            root.attributes.add(key=key).value.string_value = value
    said = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": _message("user", asks)}
    said["gen_ai.output.messages"] = _message("assistant", answer)
    spans = [_span(trace_id, 1, root.span_id, "chat m", start + _MS, 50, said)]
    if result is not None or not captured:
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_ferry"}
        called |= {"gen_ai.tool.call.arguments": "{}"}
        called |= {"gen_ai.tool.call.result": json.dumps(result)} if captured else {}
        spans.append(_span(trace_id, 2, root.span_id, "execute_tool find_ferry", start + 60 * _MS, 10, called))
    return MadeTrace(trace_id, session, "shop", (*spans, root))


def _span(
    trace_id: bytes, number: int, parent: bytes, name: str, start: int, lasts: int, attributes: dict[str, str]
) -> Span:
    span = Span(trace_id=trace_id, span_id=trace_id[-6:] + number.to_bytes(2, "big"), parent_span_id=parent, name=name)
    span.start_time_unix_nano, span.end_time_unix_nano = start, start + lasts * _MS
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


FIRST = trace(1, f"There is the {KNOWN}.", result=BOOKED)
SECOND = trace(2, "With pleasure.")
REPEATS, INVENTS = trace(3, f"You are on the {KNOWN}."), trace(4, f"You are on the {INVENTED}.")


def grounding(line: RunningLine, of: MadeTrace) -> dict[str, Any]:
    return line.of(of, "grounding")[-1]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_value_of_an_earlier_result_passes_and_an_invented_one_is_named(tmp_path: Path, restart: bool) -> None:
    traces = [FIRST, SECOND, REPEATS, INVENTS]
    async with RunningLine(tmp_path) as line:
        for each in traces:
            await line.send(each)
            await line.wait(QUIET)
            if restart:
                await line.restart()
        await line.settle()
        told, made_up = grounding(line, REPEATS), grounding(line, INVENTS)
        assert (told["score"], told["success"], told["coverage"]) == (1.0, True, 1.0)
        assert (made_up["score"], made_up["success"], made_up["label"]) == (0.0, False, "made_up_value")
        assert INVENTED in made_up["reason"]
        assert line.standing() == as_file(traces)


async def test_a_trace_that_comes_late_is_evidence_for_those_after_it(tmp_path: Path) -> None:
    async with RunningLine(tmp_path) as line:
        await line.send(REPEATS)
        await line.wait(QUIET)
        assert not grounding(line, REPEATS)["success"] if line.of(REPEATS, "grounding") else True
        await line.send(FIRST)
        await line.wait(QUIET)
        assert grounding(line, REPEATS)["success"]
        await line.settle()
        assert line.standing() == as_file([FIRST, REPEATS])


async def test_what_other_processes_understood_is_read_with_the_session_as_well(tmp_path: Path) -> None:
    async with RunningLine(tmp_path, workers=1) as line:
        for each in (FIRST, SECOND, INVENTS):
            await line.send(each)
        await line.wait(QUIET)
        assert INVENTED in grounding(line, INVENTS)["reason"]


async def test_an_owner_keeps_what_it_read_when_a_trace_is_handed_over_again(tmp_path: Path) -> None:
    """As a topic does after its readers changed: the one that decided the trace did not know the earlier ones."""
    async with two(tmp_path) as both:
        await both.decide(FIRST, INVENTS)
        await both.owner.wait(1)
        await both.owner.pipeline.take_members(both.handed)
        await both.owner.settle()
        assert grounding(both.owner, INVENTS)["score"] == 0.0
        assert both.standing() == as_file([FIRST, INVENTS])


def with_last_word(of: MadeTrace, answer: str) -> MadeTrace:
    """One more model call of the same run, which comes late and ends it."""
    said = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": _message("user", "And now?")}
    said["gen_ai.output.messages"] = _message("assistant", answer)
    start = of.spans[-1].start_time_unix_nano + 80 * _MS
    return replace(of, spans=(_span(of.trace_id, 9, of.spans[-1].span_id, "chat m", start, 5, said),))


async def test_what_was_said_of_an_older_revision_is_taken_back_where_the_newest_leaves_nothing_to_check(
    tmp_path: Path,
) -> None:
    late = with_last_word(INVENTS, "With pleasure.")
    async with RunningLine(tmp_path) as line:
        await line.send(INVENTS)
        await line.wait(QUIET)
        assert grounding(line, INVENTS)["success"] is False
        await line.send(late)
        await line.wait(200)
        found = grounding(line, INVENTS)
        assert (found["outcome"], found["success"], found["revision"]) == ("unscored", None, 2)
        assert "does not apply any more" in found["reason"]
        await line.send(with_last_word(late, "Anything else?"))
        await line.wait(200)
        assert len(line.of(INVENTS, "grounding")) == 2, "once"
        await line.settle()
        assert line.standing() == as_file([replace(INVENTS, spans=(*late.spans, *INVENTS.spans))])


async def test_what_explained_a_failure_goes_with_it(tmp_path: Path) -> None:
    """Outside of a session, where a failure is explained at once."""
    failed = trace(5, f"You are on the {INVENTED}.", result=BOOKED, session=None)
    late = with_last_word(failed, "With pleasure.")
    async with RunningLine(tmp_path) as line:
        await line.send(failed)
        await line.wait(QUIET)
        assert line.of(failed, "blame")[-1]["outcome"] == "scored"
        await line.send(late)
        await line.wait(200)
        assert line.of(failed, "blame")[-1]["outcome"] == "unscored"
        assert line.standing() == as_file([replace(failed, spans=(*late.spans, *failed.spans))])


async def test_an_owner_takes_it_back_too(tmp_path: Path) -> None:
    late = with_last_word(INVENTS, "With pleasure.")
    async with two(tmp_path) as both:
        await both.decide(INVENTS)
        await both.owner.wait(1)
        assert grounding(both.owner, INVENTS)["success"] is False
        await both.forwarder.send(late)
        await both.forwarder.wait(200)
        await both.tell()
        await both.owner.settle()
        assert grounding(both.owner, INVENTS)["outcome"] == "unscored"
        assert both.standing() == as_file([replace(INVENTS, spans=(*late.spans, *INVENTS.spans))])


async def test_an_owner_leaves_it_to_whoever_decided_the_newest_revision(tmp_path: Path) -> None:
    """Its own spans hold the value now, so that no earlier trace matters."""
    called = trace(4, "", result={"sailing": INVENTED}).spans[1]
    late = replace(INVENTS, spans=(called,))
    async with two(tmp_path) as both:
        await both.decide(INVENTS)
        await both.owner.wait(1)
        await both.forwarder.send(late)
        await both.forwarder.wait(200)
        await both.tell()
        await both.owner.settle()
        assert grounding(both.forwarder, INVENTS)["success"] is True
        assert not [each for each in both.owner.of(INVENTS, "grounding") if each["metadata"].get("taken_back")]


async def test_a_result_that_was_not_captured_may_have_held_it(tmp_path: Path) -> None:
    async with RunningLine(tmp_path) as line:
        for each in (trace(1, "I looked.", captured=False), INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        found = grounding(line, INVENTS)
        assert (found["outcome"], found["success"]) == ("unscored", None)


@pytest.mark.parametrize(("chars", "outcome"), [(10_000, "scored"), (400_000, "unscored")])
async def test_what_is_kept_of_a_trace_is_capped(tmp_path: Path, chars: int, outcome: str) -> None:
    """Of more than that, words that may be values are kept; where these are too many, the rest says nothing."""
    long = trace(1, "I looked.", result={"codes": [f"ZZ-{number}" for number in range(chars // 10)]})
    async with RunningLine(tmp_path) as line:
        for each in (long, INVENTS):
            await line.send(each)
            await line.wait(QUIET)
        assert grounding(line, INVENTS)["outcome"] == outcome
        row = line.store.session_trace(long.trace_id)
        assert row is not None
        assert len(row.answer) < 25_000


async def test_a_session_is_read_back_so_far_and_no_further(tmp_path: Path) -> None:
    between = [trace(2 + number, "With pleasure.", result={"ok": True}) for number in range(MOST_TRACES)]
    last = trace(100, f"You are on the {KNOWN}.")
    async with RunningLine(tmp_path) as line:
        for each in (FIRST, *between, last):
            await line.send(each)
        await line.wait(QUIET)
        assert grounding(line, last)["outcome"] == "unscored"
        await line.settle()
        assert line.standing() == as_file([FIRST, *between, last])
