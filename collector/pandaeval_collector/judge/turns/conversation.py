"""A whole conversation, told as one trace: what a judge is shown to say what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.judge.before import opening
from pandaeval_collector.judge.turns.stated import goal_of, knowledge_of, profile_of
from pandaeval_otel.model import Span, ToolDefinition, Trace, Turn


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
        turns=tuple(_timed(turn, trace) for trace in traces for turn in trace.turns),
        tool_calls=tuple(call for trace in traces for call in trace.tool_calls),
        tools=tuple(tools.values()),
        reasoning=(),
        llm_calls=sum(trace.llm_calls for trace in traces),
        agents=tuple(dict.fromkeys(name for trace in traces for name in trace.agents)),
        dropped_attributes=sum(trace.dropped_attributes for trace in traces),
        notes=tuple(dict.fromkeys(note for trace in traces for note in trace.notes)),
        digest=digest,
    )
    stating = [span for trace in traces for span in trace.spans]
    knowledge = tuple(dict.fromkeys(text for trace in traces for text in knowledge_of(trace, trace.spans)))
    return Conversation(whole, len(traces), missing, goal_of(stating), profile_of(stating), knowledge)


def _timed(turn: Turn, trace: Trace) -> Turn:
    """The turn with the start of its trace where it has none of its own, so that calls can be told to belong to it."""
    return turn if turn.start_ns else replace(turn, start_ns=trace.start_ns)


def _shown(trace: Trace, is_first: bool) -> Iterator[Span]:
    """What stands in the record of a conversation: instructions, documents that were found, and of the first trace the
    model call that tells what was there before it. Thoughts are left out."""
    first = opening(trace) if is_first else None
    for span in trace.spans:
        if span is first or not span.input:
            yield span if span.output is None else span.but(output=None)
        else:
            told = tuple(message for message in span.input if message.role == "system")
            yield span.but(input=told or None, output=None)
