"""Where the time of a trace went between two tool calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from pandaeval_otel.model import Kind, ToolCall, Trace

_WORK = frozenset({Kind.LLM, Kind.TOOL, Kind.RETRIEVAL, Kind.EMBEDDING, Kind.GUARDRAIL, Kind.EVALUATION})


class Timeline:
    """Built once per trace in O(n log n); every question is O(log n)."""

    def __init__(self, trace: Trace) -> None:
        models = sorted((span for span in trace.spans if span.kind is Kind.LLM), key=lambda span: span.start_ns)
        self._tool_spans = {span.span_id for span in trace.spans if span.kind is Kind.TOOL}
        self._model_starts = [span.start_ns for span in models]
        self._tokens = [0, *accumulate(span.usage.input + span.usage.output if span.usage else 0 for span in models)]
        work = merged((span.start_ns, span.end_ns) for span in trace.spans if span.kind in _WORK)
        self._starts = [start for start, _ in work]
        self._ends = [end for _, end in work]
        self._worked = [0, *accumulate(end - start for start, end in work)]
        ends = {span.span_id: span.end_ns for span in trace.spans}
        answered = [turn.span_id for turn in trace.turns[:-1] if turn.assistant is not None]
        self._turn_ends = sorted(ends[span_id] for span_id in answered if span_id in ends)

    def idle_s(self, before: ToolCall, after: ToolCall) -> float:
        """Measures the seconds from the end of one call to the start of another in which no model and no tool
        worked."""
        gap = after.start_ns - before.end_ns
        if gap <= 0:
            return 0.0
        return (gap - self._work_before(after.start_ns) + self._work_before(before.end_ns)) / 1e9

    def knows_work(self, call: ToolCall) -> bool:
        """Whether the trace shows its model calls and how long this tool call took. If not, what looks idle after the
        call may have been work."""
        return bool(self._model_starts) and call.span_id in self._tool_spans

    def tokens(self, start_ns: int, end_ns: int) -> int:
        """Sums input and output tokens of the model calls that started in this interval."""
        first, last = bisect_left(self._model_starts, start_ns), bisect_left(self._model_starts, end_ns)
        return self._tokens[max(first, last)] - self._tokens[first]

    def turn(self, call: ToolCall) -> int:
        """Counts the turns of the trace that were answered before this call."""
        return bisect_right(self._turn_ends, call.start_ns)

    def _work_before(self, at_ns: int) -> int:
        index = bisect_right(self._starts, at_ns)
        if index == 0:
            return 0
        return self._worked[index] - max(0, self._ends[index - 1] - at_ns)


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges stretches of time that overlap, and sorts them. An interval that ends before it starts is empty."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((start, max(start, end)) for start, end in intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
