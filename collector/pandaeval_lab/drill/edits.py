"""Changes of a run's spans."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pandaeval_lab.drill.fault import NotApplicableError
from pandaeval_lab.drill.raw import Change, RawTrace
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

_LEAST = 12
"""A shorter text can be part of other texts by chance, so it is replaced only if it is the whole text."""


# Each edit has ``what``: the change in a line, for people; ``write``: changes the spans in ``raw``, given the run that
# was read from these spans; and ``is_applied``: whether the changed run, read again, has the intended change.
@dataclass(frozen=True)
class AnswerEdit:
    """Gives the run another final answer."""

    text: str
    what: str

    def write(self, raw: RawTrace, before: Trace) -> None:
        raw.rewrite(text_change(before.output or "", self.text))

    def is_applied(self, before: Trace, after: Trace) -> bool:
        return (after.output or "").strip() == self.text.strip()


@dataclass(frozen=True)
class ToolResultEdit:
    """Gives the call at ``index`` another result; ``failed``: its span also ends in an error."""

    index: int
    result: Any
    what: str
    failed: bool = False

    def write(self, raw: RawTrace, before: Trace) -> None:
        call = before.tool_calls[self.index]
        if not call.has_result or call.result in (None, "", {}, []):
            raise NotApplicableError("the call's result was not captured")
        old = call.result
        raw.rewrite(lambda held: self.result if type(held) is type(old) and held == old else held)
        span = raw.span(call.span_id)
        if self.failed and span is not None and call.start_ns == span.start_time_unix_nano:
            span.status.code = 2  # type: ignore[assignment]
            span.status.message = str(self.result)

    def is_applied(self, before: Trace, after: Trace) -> bool:
        calls = after.tool_calls
        return len(calls) == len(before.tool_calls) and calls[self.index].result == self.result


@dataclass(frozen=True)
class CustomEdit:
    """Makes any other change of the spans. ``test``: whether it worked, given the run before and after."""

    change: Callable[[RawTrace, Trace], None] = field(repr=False)
    test: Callable[[Trace, Trace], bool] = field(repr=False)
    what: str

    def write(self, raw: RawTrace, before: Trace) -> None:
        self.change(raw, before)

    def is_applied(self, before: Trace, after: Trace) -> bool:
        return self.test(before, after)


Edit = AnswerEdit | ToolResultEdit | CustomEdit


def repeated(before: Trace, index: int, times: int, what: str) -> CustomEdit:
    """Return an edit that repeats a call, each time with its model call."""
    call = before.tool_calls[index]

    def change(raw: RawTrace, trace: Trace) -> None:
        asking = _asking(trace, call)
        raw.repeat({call.span_id} | ({asking.span_id} if asking else set()), times, again)

    def again(number: int, held: Any) -> Any:
        return f"{call.id}_{number}" if call.id and held == call.id else held

    def test(trace: Trace, after: Trace) -> bool:
        return len(after.tool_calls) == len(trace.tool_calls) + times and after.output == trace.output

    return CustomEdit(change, test, what)


def _asking(trace: Trace, call: ToolCall) -> Span | None:
    for span in trace.spans:
        if span.kind is Kind.LLM and span.end_ns <= max(call.start_ns, call.end_ns):
            asked = [each for message in span.output or () for each in message.tool_requests]
            if any((each.id, each.name) == (call.id, call.name) for each in asked):
                return span
    return None


def _spellings(text: str) -> tuple[str, ...]:
    escaped = (json.dumps(text, ensure_ascii=False), json.dumps(text), repr(text))
    return text, *(each[1:-1] for each in escaped)


def text_change(old: str, new: str) -> Change:
    """Return a change that replaces ``old`` by ``new`` in texts, also escaped."""
    pairs = dict(zip(_spellings(old), _spellings(new), strict=True))

    def change(held: Any) -> Any:
        if not isinstance(held, str) or not held:
            return held
        if held.strip() == old.strip():
            return new
        for spelling, other in pairs.items():
            if len(old) >= _LEAST and spelling in held:
                return held.replace(spelling, other)
        return held

    return change
