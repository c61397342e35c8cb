"""What a span takes over from the spans above it: the agent at work, and the tool call that it happens inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pandaeval_otel.model import Kind, Span


def agents(spans: Sequence[Span]) -> dict[str, str]:
    """Maps each span id to the agent at work: the span's own, else the nearest one above it; ``""`` where none is
    named."""
    return _inherited({span.span_id: span for span in spans}, lambda span: span.agent_name)


def contexts(spans: Sequence[Span]) -> dict[str, str]:
    """Maps each span id to the tool call in which an agent of its own did it; ``""`` or nothing for what the outermost
    agents do.

    An agent that was started as a tool knows nothing of the others that were started so, not even under its own name.
    """
    by_id = {span.span_id: span for span in spans}
    if not _nested(by_id):
        return {}
    tools = _inherited(by_id, lambda span: span.span_id if span.kind is Kind.TOOL else "")
    return _inherited(by_id, lambda span: tools.get(span.parent_id, "") if span.kind is Kind.AGENT else "")


def delegating(spans: Sequence[Span]) -> set[str]:
    """Returns the ids of the tool spans in which an agent worked: the nearest one above each agent."""
    by_id = {span.span_id: span for span in spans}
    if not _nested(by_id):
        return set()
    tools = _inherited(by_id, lambda span: span.span_id if span.kind is Kind.TOOL else "")
    return {tools[span.parent_id] for span in spans if span.kind is Kind.AGENT and tools.get(span.parent_id)}


def _nested(by_id: Mapping[str, Span]) -> bool:
    """Whether an agent may have worked inside a tool call: most have no span above them."""
    return any(span.kind is Kind.AGENT and span.parent_id in by_id for span in by_id.values())


def _inherited(by_id: Mapping[str, Span], own: Callable[[Span], str]) -> dict[str, str]:
    """For each span its own value, else that of the nearest span above it with one. Each span is visited once; parent
    loops and missing parents end the search."""
    found: dict[str, str] = {}
    for span in by_id.values():
        path: list[str] = []
        at: Span | None = span
        value = ""
        while at is not None:
            value = found[at.span_id] if at.span_id in found else own(at)
            if value or at.span_id in found:
                break
            found[at.span_id] = ""  # also what ends a parent loop
            path.append(at.span_id)
            at = by_id.get(at.parent_id)
        found[span.span_id] = value
        found.update(dict.fromkeys(path, value))
    return found
