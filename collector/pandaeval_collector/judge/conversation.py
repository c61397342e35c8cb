"""Joins a session into one trace, for metrics that judge its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.context import opening
from pandaeval_otel.base.semconv import PANDAEVAL_GOAL, PANDAEVAL_KNOWLEDGE, PANDAEVAL_PROFILE
from pandaeval_otel.model import Span, ToolDefinition, Trace, Turn

T = TypeVar("T")

_MOST_ITEMS = 100


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session for metrics.

    ``trace``: all turns and tool calls. ``missing``: omitted traces. ``owners``: trace by span. Others: see
    :class:`pandaeval_collector.judge.turns.TurnView`.
    """

    trace: Trace
    traces: int
    missing: int = 0
    goal: str = ""
    profile: str = ""
    knowledge: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)


def conversation(traces: Sequence[Trace], digest: str, missing: int = 0) -> Conversation:
    """Join a session's ``traces`` (at least one), oldest first. ``digest``: of all of them."""
    if len(traces) == 1 and not missing:  # then the prompt begins like the prompt about the trace
        return Conversation(traces[0], 1, 0, *facts_of(traces[0], traces[0].spans))
    whole = replace(
        traces[-1],
        spans=tuple(_spans(traces)),
        input=traces[0].input,
        turns=tuple(_turns(traces)),
        tool_calls=tuple(call for trace in traces for call in trace.tool_calls),
        tools=_tools(traces),
        reasoning=(),
        llm_calls=sum(trace.llm_calls for trace in traces),
        agents=_unique(trace.agents for trace in traces),
        dropped_attributes=sum(trace.dropped_attributes for trace in traces),
        notes=_unique(trace.notes for trace in traces),
        digest=digest,
    )
    goal, profile, _ = facts_of(whole, [span for trace in traces for span in trace.spans])
    knowledge = _unique(facts_of(trace, trace.spans)[2] for trace in traces)
    owners = {span.span_id: trace.trace_id for trace in traces for span in trace.spans}
    return Conversation(whole, len(traces), missing, goal, profile, knowledge, owners)


def _spans(traces: Sequence[Trace]) -> Iterator[Span]:
    first = opening(traces[0])
    for trace in traces:
        for span in trace.spans:
            if span.input and span is not first:
                instructions = tuple(message for message in span.input if message.role == "system")
                yield span.but(input=instructions or None, output=None)
            else:
                yield span if span.output is None else span.but(output=None)


def _turns(traces: Sequence[Trace]) -> Iterator[Turn]:
    for trace in traces:
        for turn in trace.turns:
            start, span_id = turn.start_ns or trace.start_ns, turn.span_id or trace.root_span_id
            yield replace(turn, start_ns=start, span_id=span_id)


def _tools(traces: Sequence[Trace]) -> tuple[ToolDefinition, ...]:
    tools: dict[tuple[str, tuple[str, ...]], ToolDefinition] = {}
    for trace in traces:
        tools.update(((tool.name, tool.agents), tool) for tool in trace.tools)
    return tuple(tools.values())


def _unique(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def facts_of(trace: Trace, spans: Sequence[Span]) -> tuple[str, str, tuple[str, ...]]:
    """Return the first stated goal and user profile (or ``""``), and up to 100 facts and documents."""
    known = [text for span in spans for text in _items(span.attributes.get(PANDAEVAL_KNOWLEDGE))]
    known += [_text(document) for span in trace.spans for document in span.documents]
    return _first(spans, PANDAEVAL_GOAL), _first(spans, PANDAEVAL_PROFILE), tuple(dict.fromkeys(known))[:_MOST_ITEMS]


def _first(spans: Sequence[Span], key: str) -> str:
    texts = (_text(span.attributes[key]).strip() for span in spans if key in span.attributes)
    return next(filter(None, texts), "")


def _items(stated: Any) -> Iterator[str]:
    if isinstance(stated, str):
        held: Any = None
        if stated.lstrip().startswith("["):
            with suppress(ValueError):  # the only exception, even for deeply nested lists
                held = orjson.loads(stated)
        if isinstance(held, list):
            yield from _items(held)
        elif stated.strip():
            yield stated.strip()
    elif isinstance(stated, list | tuple):
        yield from (text for each in stated if (text := _text(each).strip()))
    elif stated is not None:
        yield _text(stated)


def _text(value: Any) -> str:
    try:
        return as_text(value)
    except RecursionError:  # hundreds of nested lists contain no readable fact
        return "…"
