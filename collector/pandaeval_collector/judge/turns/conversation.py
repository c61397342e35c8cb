"""A whole conversation, told as one trace: what a judge is shown to say what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.judge.turns.stated import goal_of, knowledge_of, profile_of
from pandaeval_otel.model import Kind, Span, ToolDefinition, Trace


@dataclass(frozen=True, slots=True)
class Conversation:
    """``trace``: with the turns and tool calls of all traces; ``missing``: traces that are not kept any more, or were
    too many to be shown; the rest as in :class:`pandaeval_collector.judge.turns.TurnView`."""

    trace: Trace
    traces: int
    missing: int = 0
    goal: str = ""
    profile: str = ""
    knowledge: tuple[str, ...] = ()


def conversation(traces: Sequence[Trace], digest: str, missing: int = 0) -> Conversation:
    """Of the ``traces`` of a session (at least one), oldest first. ``digest``: of all of them."""
    if len(traces) == 1 and not missing:  # what is asked about it begins like what was asked about the trace
        one = traces[0]
        stated = goal_of(one.spans), profile_of(one.spans), knowledge_of(one, one.spans)
        return Conversation(one, 1, 0, *stated)
    last = traces[-1]
    tools: dict[str, ToolDefinition] = {}
    for trace in traces:
        tools.update((tool.name, tool) for tool in trace.tools)
    whole = replace(
        last,
        spans=tuple(span for at, trace in enumerate(traces) for span in _shown(trace, at == 0)),
        input=traces[0].input,
        turns=tuple(turn for trace in traces for turn in trace.turns),
        tool_calls=tuple(call for trace in traces for call in trace.tool_calls),
        tools=tuple(tools.values()),
        reasoning=(),
        digest=digest,
    )
    stating = [span for trace in traces for span in trace.spans]
    knowledge = tuple(dict.fromkeys(text for trace in traces for text in knowledge_of(trace, trace.spans)))
    return Conversation(whole, len(traces), missing, goal_of(stating), profile_of(stating), knowledge)


def _shown(trace: Trace, is_first: bool) -> list[Span]:
    """Documents that were found, and of the first trace the model call that tells what was there before it."""
    opening = next((span for span in trace.spans if span.kind is Kind.LLM and span.input), None) if is_first else None
    return [span for span in trace.spans if span is opening or span.documents]
