"""What happened in a run, told in order: turns, thoughts, calls with their results, documents that were found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from pandaeval_collector.judge.facts import CallFacts
from pandaeval_collector.judge.neutral import elided, one_line
from pandaeval_collector.judge.thoughts import thoughts
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

FAILED = "FAILED:"
_CLOCKS_SINCE = 10**18
"""Nanoseconds since 1970 (in 2001) below which a time is no clock's."""
_REMINDED = 300
"""Characters of the user's words that are told again where their turn begins: they stand whole at the outset."""


class OwnWords(str):
    """A block of our own words, which needs no fence. A text of the trace is none, whatever it says."""

    __slots__ = ()


_NO_CALLS = OwnWords("(no tool was called)")


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How much of each part is shown. ``value``: most characters of an argument, a result or a thought; ``text``: of
    what the user said and the agent answered, of an error and of instructions; ``tool``: of a tool's description and of
    its parameters; ``listed``: most tools, and documents of one retrieval; ``context``: tokens of the conversation
    before."""

    value: int
    text: int
    tool: int
    listed: int
    context: int


class _Place(IntEnum):
    """What comes first of that which has the same time."""

    ANSWER = 0
    USER = 1
    THOUGHT = 2
    STEP = 3


_Piece = tuple[int, _Place, str]


def clock(nanoseconds: int) -> str:
    """Day of the week, date and time in UTC, to the minute; ``""`` for what is no clock's time."""
    if nanoseconds < _CLOCKS_SINCE:
        return ""
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%A, %Y-%m-%d %H:%M} UTC"


def steps(trace: Trace, facts: CallFacts, limits: StepLimits) -> list[str]:
    """The blocks of what happened. What was said or thought stands on one line before the call that it led to."""
    pieces = [*_turns(trace, limits), *_thoughts(trace, limits), *_calls(trace, facts, limits)]
    pieces += [(span.start_ns, _Place.STEP, _retrieval(span, limits)) for span in trace.spans if _retrieved(span)]
    blocks = _blocks(sorted(pieces, key=lambda piece: piece[:2]))
    if not trace.tool_calls:
        blocks.append(_NO_CALLS)
    if trace.error is not None:
        blocks.append(f"the run ended with this error: {elided(one_line(trace.error), limits.text)}")
    return blocks


def _blocks(pieces: Sequence[_Piece]) -> list[str]:
    blocks: list[str] = []
    lines: list[str] = []
    for _, place, text in pieces:
        lines.append(text)
        if place in (_Place.STEP, _Place.ANSWER):  # may have several lines, so nothing of the block follows
            blocks.append("\n".join(lines))
            lines = []
    return [*blocks, "\n".join(lines)] if lines else blocks


def _turns(trace: Trace, limits: StepLimits) -> Iterator[_Piece]:
    """Where there are several: the user's words, shortened, and the answers of all turns but the last."""
    turns, since = trace.turns, 0
    if len(turns) < 2:
        return
    for number, turn in enumerate(turns, 1):
        since = max(since, turn.start_ns) if number > 1 else 0
        if number > 1 and (answer := turns[number - 2].assistant):
            yield since, _Place.ANSWER, f"turn {number - 1}, the agent answered: {elided(answer, limits.text)}"
        when = clock(turn.start_ns)
        said = elided(one_line(turn.user), _REMINDED) if turn.user else "(no text was captured)"
        yield since, _Place.USER, f"turn {number}{f' ({when})' if when else ''}, the user said: {said}"


def _thoughts(trace: Trace, limits: StepLimits) -> Iterator[_Piece]:
    for time, what, text in thoughts(trace):
        yield time, _Place.THOUGHT, f"{what}: {elided(one_line(text), limits.value)}"


def _calls(trace: Trace, facts: CallFacts, limits: StepLimits) -> Iterator[_Piece]:
    calls = trace.tool_calls
    several = len({call.agent for call in calls}) > 1
    for index, call in enumerate(calls):
        yield call.start_ns, _Place.STEP, _step(index, calls, limits, several, index + 1 in facts.failed)


def _retrieved(span: Span) -> bool:
    return span.kind is Kind.RETRIEVAL and bool(span.documents)


def _retrieval(span: Span, limits: StepLimits) -> str:
    shown = [f"- {elided(one_line(each), limits.value)}" for each in span.documents[: limits.listed]]
    if len(span.documents) > limits.listed:
        shown.append(f"(… and {len(span.documents) - limits.listed} more)")
    return "\n".join([f"documents found by {elided(one_line(span.name), limits.text)}:", *shown])


def _step(index: int, calls: Sequence[ToolCall], limits: StepLimits, several: bool, failed: bool) -> str:
    """``several``: agents made the calls. Names, arguments and errors stay on one line each, and the result comes last:
    no line of theirs can pass for another part of the step."""
    call = calls[index]
    parallel = any(o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns for o in _near(calls, index))
    head = f"call {index + 1}: {elided(one_line(call.name), limits.text)}"
    if call.agent and several:
        head += f" by agent {elided(one_line(call.agent), limits.text)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    shown = elided(one_line(call.arguments), limits.value) if call.has_arguments else "(not captured)"
    lines = [head, f"arguments: {shown}"]
    if call.error is not None:
        lines.append(f"{FAILED} {elided(one_line(call.error), limits.text)}")
    elif failed:
        lines.append(f"{FAILED} its result says so")
    if call.has_result and call.result is not None:
        lines.append(f"result: {elided(call.result, limits.value)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return "\n".join(lines)


def _near(calls: Sequence[ToolCall], index: int) -> Sequence[ToolCall]:
    return calls[max(0, index - 2) : index + 3]
