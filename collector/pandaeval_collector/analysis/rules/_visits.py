"""Periods of a run with a single agent at work, and the agent of each span."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pandaeval_otel.model import Kind, Span, ToolCall, Trace

_ACTING = frozenset({Kind.AGENT, Kind.LLM, Kind.TOOL})


# Values that a span inherits from the spans above it: the acting agent, and the surrounding tool call.
def agents(spans: Sequence[Span]) -> dict[str, str]:
    """Map each span ID to its own or nearest agent; ``""`` if unnamed."""
    return _inherited({span.span_id: span for span in spans}, lambda span: span.agent_name)


def contexts(spans: Sequence[Span]) -> dict[str, str]:
    """Map each span ID to the tool call that started its agent; ``""`` or missing for outermost agents."""
    by_id = {span.span_id: span for span in spans}
    tools = _inherited(by_id, lambda span: span.span_id if span.kind is Kind.TOOL else "")
    return _inherited(by_id, lambda span: tools.get(span.parent_id, "") if span.kind is Kind.AGENT else "")


def _inherited(by_id: Mapping[str, Span], own: Callable[[Span], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for span in by_id.values():
        path: list[str] = []
        at: Span | None = span
        value = ""
        while at is not None:
            value = found[at.span_id] if at.span_id in found else own(at)
            if value or at.span_id in found:
                break
            found[at.span_id] = ""  # also ends a cycle of parents
            path.append(at.span_id)
            at = by_id.get(at.parent_id)
        found[span.span_id] = value
        found.update(dict.fromkeys(path, value))
    return found


@dataclass(slots=True)
class Visit:
    """A period of a run with a single agent at work."""

    agent: str
    start_ns: int
    first_span_id: str
    models: list[Span] = field(default_factory=list)

    @property
    def end_ns(self) -> int:
        return max((span.end_ns for span in self.models), default=self.start_ns)


class Visits:
    def __init__(self, trace: Trace) -> None:
        self.all: list[Visit] = []
        self._of_span: dict[str, int] = {}
        acting = agents(trace.spans)
        for span in sorted(trace.spans, key=lambda span: span.start_ns):
            agent = acting[span.span_id]
            if span.kind not in _ACTING or not agent:
                continue
            if not self.all or self.all[-1].agent != agent:
                self.all.append(Visit(agent, span.start_ns, span.span_id))
            if span.kind is Kind.LLM:
                self.all[-1].models.append(span)
            self._of_span[span.span_id] = len(self.all) - 1
        self._starts = [visit.start_ns for visit in self.all]

    def of(self, call: ToolCall) -> int:
        """Return a call's visit number; -1 without a named agent."""
        by_time = bisect_right(self._starts, call.start_ns) - 1
        return self._of_span.get(call.span_id, by_time)
