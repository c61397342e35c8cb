"""A run's steps for the judge in order: messages, thoughts, calls with results, documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.run_facts import CallFacts, thoughts
from pandaeval_collector.judge.sanitize import escaped, neutral, one_line
from pandaeval_collector.judge.shorten import elided
from pandaeval_otel.model import Kind, Span, ToolCall, Trace, Turn

FAILED = "FAILED:"
_CLOCKS_SINCE = 10**18
"""Nanoseconds since 1970, in 2001. A smaller value is not a time of day."""
_DEEPEST_CALL = 64
NOTHING = "(nothing was captured)"
_EMPTY = "(captured, and empty)"
_NO_TEXT = "(something that is no text, such as an image: not shown)"
_MESSAGE, _THOUGHT, _STEP = range(3)
"""Order of pieces with the same time."""


class OwnWords(str):
    """An unfenced block of our own words, never trace text."""

    __slots__ = ()


class KeptBlock(str):
    """A call that changed state, or its read-back; cut last."""

    __slots__ = ()


class UsedBlock(str):
    """A call whose result later steps use."""

    __slots__ = ()


class _Piece(NamedTuple):
    time: int
    order: int
    text: str


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Limits of each part, sanitized by ``clean``.

    In characters: ``value``, ``text``, ``tool``. ``listed``: tools, and documents per retrieval. ``context``: tokens of
    the earlier conversation.
    """

    value: int
    text: int
    tool: int
    listed: int
    context: int
    clean: Callable[[str], str] = neutral

    def shown(self, value: object, most: int = 0) -> str:
        return elided(self.clean(as_text(value)), most or self.value)

    def line(self, value: object, most: int = 0) -> str:
        return elided(one_line(self.clean(as_text(value))), most or self.value)

    def code(self, value: object) -> str:
        return elided(escaped(self.clean(as_text(value))), self.value)


def clock(nanoseconds: int) -> str:
    """Format weekday, date and time in UTC, to the minute; ``""`` for an invalid time."""
    if nanoseconds < _CLOCKS_SINCE:
        return ""
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%A, %Y-%m-%d %H:%M} UTC"


def message(prefix: str, text: str | None, limits: StepLimits, media: bool = False) -> str:
    """Write a message after ``prefix``; in our own words if empty."""
    if text is not None and text.strip():
        return prefix + limits.shown(text, limits.text)
    if media:
        return OwnWords(prefix + _NO_TEXT)
    return OwnWords(prefix + (NOTHING if text is None else _EMPTY))


def steps(trace: Trace, facts: CallFacts, limits: StepLimits) -> list[str]:
    """Write the blocks of a run's steps. Thoughts precede their call."""
    turns = trace.turns if len(trace.turns) > 1 else ()
    pieces = [*_messages(turns, limits)]
    pieces += [_Piece(time, _THOUGHT, f"{kind}: {limits.code(text)}") for time, kind, text in thoughts(trace)]
    pieces += _calls(trace, turns, facts, limits)
    for span in trace.spans:
        if span.kind is Kind.RETRIEVAL and span.documents:
            pieces.append(_Piece(span.start_ns, _STEP, _documents(span, limits)))
    return [*_blocks(sorted(pieces, key=lambda piece: piece[:2])), *_end(trace, len(turns), limits)]


def last_answer(trace: Trace) -> str | None:
    last = trace.turns[-1].assistant if trace.turns else None
    if last is None and trace.output is not None and not trace.output.strip():
        return trace.output
    return last


def _messages(turns: Sequence[Turn], limits: StepLimits) -> Iterator[_Piece]:
    since, answer = 0, None
    for number, turn in enumerate(turns, 1):
        if number > 1:
            since = max(since, turn.start_ns)
        if answer is not None:
            yield _Piece(since, _MESSAGE, message(f"turn {number - 1}, the agent answered: ", answer, limits))
        when = clock(turn.start_ns)
        head = f"turn {number} ({when})" if when else f"turn {number}"
        yield _Piece(since, _MESSAGE, message(f"{head}, the user said: ", turn.user, limits, turn.media_only))
        answer = turn.assistant


def _blocks(pieces: Iterable[_Piece]) -> Iterator[str]:
    lines: list[str] = []
    for piece in pieces:
        if piece.order == _THOUGHT:
            lines.append(piece.text)
        elif piece.order == _STEP:
            yield type(piece.text)("\n".join([*lines, piece.text]))
            lines = []
        else:
            if lines:
                yield "\n".join(lines)
                lines = []
            yield piece.text
    if lines:
        yield "\n".join(lines)


def _end(trace: Trace, turns: int, limits: StepLimits) -> Iterator[str]:
    if not trace.tool_calls:
        yield OwnWords("(no tool was called)")
    if trace.blocked is not None:
        yield f"a guardrail stopped the run on purpose: {limits.line(trace.blocked[0], limits.text)}"
    if trace.error is not None:
        yield f"the run ended with this error: {limits.line(trace.error, limits.text)}"
    if turns:
        yield message(f"turn {turns}, the agent answered: ", last_answer(trace), limits)


def _documents(span: Span, limits: StepLimits) -> str:
    lines = [f"documents found by {limits.line(span.name, limits.text)}:"]
    lines += [f"- {limits.line(document)}" for document in span.documents[: limits.listed]]
    if len(span.documents) > limits.listed:
        lines.append(f"(… and {len(span.documents) - limits.listed} more)")
    return "\n".join(lines)


def _calls(trace: Trace, turns: Sequence[Turn], facts: CallFacts, limits: StepLimits) -> Iterator[_Piece]:
    calls = trace.tool_calls
    several = len({call.agent for call in calls}) > 1
    parents = {span.span_id: span.parent_id for span in trace.spans}
    for first, last, like in _folded(calls, turns):
        if like == first:
            text = _call(first, calls, limits, several, facts, parents)
        elif last > first:
            text = f"calls {first + 1} to {last + 1}: as call {like + 1}, {last - first + 1} times more"
        else:
            text = f"call {first + 1}: as call {like + 1}"
        yield _Piece(calls[first].start_ns, _STEP, text)


def _folded(calls: Sequence[ToolCall], turns: Sequence[Turn]) -> Iterator[tuple[int, int, int]]:
    known: dict[str, int] = {}

    def kind(index: int) -> tuple[int, int, bool]:
        call = calls[index]
        content = repr((call.name, call.agent, call.arguments, call.has_result, call.result, call.error))
        like = known.setdefault(content, index)
        return like, sum(turn.start_ns <= call.start_ns for turn in turns), like == index

    for (like, *_), row in groupby(range(len(calls)), kind):
        indexes = [*row]
        yield indexes[0], indexes[-1], like


def _call(
    index: int,
    calls: Sequence[ToolCall],
    limits: StepLimits,
    several: bool,
    facts: CallFacts,
    parents: Mapping[str, str],
) -> str:
    call, number = calls[index], index + 1
    head = f"call {number}: {limits.line(call.name, limits.text)}"
    if call.agent and several:
        head += f" by agent {limits.line(call.agent, limits.text)}"
    if _is_parallel(call, calls[max(0, index - 2) : index + 3], parents):
        head += " (in parallel with a neighbour)"
    lines = [head, f"arguments: {limits.code(call.arguments) if call.has_arguments else '(not captured)'}"]
    if call.error is not None:
        lines.append(f"{FAILED} {limits.line(call.error, limits.text)}")
    elif number in facts.failed:
        lines.append(f"{FAILED} its result says so")
    if call.has_result and call.result is not None:
        lines.append(f"result: {_result(as_text(call.result), number, facts, limits)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    text = "\n".join(lines)
    if number in facts.changing or number in facts.checks:
        return KeptBlock(text)
    return UsedBlock(text) if number in facts.used or number in facts.same.values() else text


def _result(result: str, number: int, facts: CallFacts, limits: StepLimits) -> str:
    if not result.strip():
        return "(empty)"
    if number in facts.same:
        return f"(the same as that of call {facts.same[number]})"
    if number in facts.changing:
        return limits.clean(result)
    return elided(limits.clean(result), limits.value, facts.used.get(number, ()))


def _is_parallel(call: ToolCall, near: Sequence[ToolCall], parents: Mapping[str, str]) -> bool:
    for other in near:
        overlaps = other is not call and other.start_ns < call.end_ns and call.start_ns < other.end_ns
        if overlaps and not (_is_below(other, call, parents) or _is_below(call, other, parents)):
            return True
    return False


def _is_below(inner: ToolCall, outer: ToolCall, parents: Mapping[str, str]) -> bool:
    span_id = inner.span_id
    for _ in range(_DEEPEST_CALL):
        span_id = parents.get(span_id, "")
        if not span_id or span_id == outer.span_id:
            break
    return bool(span_id) and span_id == outer.span_id
