"""Takes a conversation that is one trace apart: each turn as a trace of its own, with the spans that began in it."""

from __future__ import annotations

from dataclasses import replace

from pandaeval_otel.model import Kind, Reasoning, Span, Trace, Turn

_NEVER = 1 << 63


def of_turn(trace: Trace, index: int) -> Trace:
    """The trace as if the ``index``-th turn (0-based) were all of it: its spans, tool calls and thoughts are those that
    began in that turn; ids, digest and tools stay. A trace of a single turn is given back as it is. Raises
    ``IndexError`` where there is no such turn."""
    turns = trace.turns
    turn = turns[index]
    if len(turns) == 1:
        return trace
    since = 0 if index == 0 else turn.start_ns
    until = turns[index + 1].start_ns if index + 1 < len(turns) else _NEVER
    spans = tuple([span for span in trace.spans if since <= span.start_ns < until])
    return replace(
        trace,
        spans=spans,
        root_span_id=turn.span_id,
        input=turn.user,
        output=turn.assistant,
        turns=(turn,),
        tool_calls=tuple([call for call in trace.tool_calls if since <= call.start_ns < until]),
        reasoning=_reasoning(spans),
        error=trace.error if index + 1 == len(turns) else _error(trace, turn),
        ends_in_tool_call=trace.ends_in_tool_call and index + 1 == len(turns),
        llm_calls=len([span for span in spans if span.kind is Kind.LLM]),
    )


def _reasoning(spans: tuple[Span, ...]) -> tuple[str, ...]:
    said = [
        part.text
        for span in spans
        for message in span.output or ()
        for part in message.parts
        if isinstance(part, Reasoning) and part.text
    ]
    return tuple(dict.fromkeys(said))


def _error(trace: Trace, turn: Turn) -> str | None:
    return next((span.error for span in trace.spans if span.span_id == turn.span_id), None)
