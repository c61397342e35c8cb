"""What a metric of level turn, or of a whole conversation, looks at: one turn with all that was there before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.before import AGENT, USER, before, lines_of, opening
from pandaeval_otel.base.semconv import PANDAEVAL_GOAL, PANDAEVAL_KNOWLEDGE, PANDAEVAL_PROFILE
from pandaeval_otel.model import Span, ToolCall, ToolDefinition, Trace
from pandaeval_otel.normal.turns import of_turn

_MOST_ITEMS = 100


def facts_of(trace: Trace, spans: Sequence[Span]) -> tuple[str, str, tuple[str, ...]]:
    """Returns what ``spans`` state: the first goal and the first profile of the user, ``""`` without any; and what is
    known, with the documents retrieved in ``trace``, each once, the first 100."""
    goal, profile = (
        next((text for span in spans if key in span.attributes and (text := _text(span.attributes[key]).strip())), "")
        for key in (PANDAEVAL_GOAL, PANDAEVAL_PROFILE)
    )
    known = [text for span in spans for text in _items(span.attributes.get(PANDAEVAL_KNOWLEDGE))]
    known += [_text(each) for span in trace.spans for each in span.documents]
    return goal, profile, tuple(dict.fromkeys(known))[:_MOST_ITEMS]


def _items(stated: Any) -> Iterator[str]:
    """Yields a text, the items of a list, or those of the JSON list in a text."""
    if isinstance(stated, str):
        held: Any = None
        if stated.lstrip().startswith("["):
            with suppress(ValueError):  # which it raises alone, however deep the lists of a stranger are
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
    except RecursionError:  # hundreds of lists within each other tell nobody anything
        return "…"


# One turn, as metrics of level turn see it: after Agentest's ``ScoreInput``.
_RESULT, _HIDDEN = "result: ", "result: (not captured)"
Hide = Callable[[Trace], Trace]
"""Redacts the texts of a trace."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as turn metrics see it. ``trace``: as if this turn were all of it; ``said``: the conversation before it,
    oldest first, one text for each message, call and result. ``turn_index``: 0-based, among the known turns. ``goal``,
    ``profile``: ``""`` where nothing states them; ``knowledge``: what spans state as known, and the documents that this
    turn retrieved."""

    trace: Trace
    said: tuple[str, ...] = ()
    turn_index: int = 0
    goal: str = ""
    profile: str = ""
    knowledge: tuple[str, ...] = ()

    @property
    def user_message(self) -> str | None:
        """What the user said; ``None``: not captured."""
        return self.trace.turns[0].user

    @property
    def agent_message(self) -> str | None:
        """What the agent answered; ``None``: not captured, or there is none."""
        return self.trace.turns[0].assistant

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of this turn in order, with ``name``, ``arguments`` and ``result``."""
        return self.trace.tool_calls

    @property
    def span_id(self) -> str:
        """The id of the span that answers."""
        return self.trace.turns[0].span_id or self.trace.root_span_id

    @property
    def history(self) -> tuple[tuple[str, str], ...]:
        """The user's message and the agent's answer of each earlier turn, oldest first."""
        return tuple(_exchanges(self.said))

    @property
    def has_results(self) -> bool:
        """Whether any tool's result is known, in this turn or an earlier one."""
        if any(call.has_result and call.result is not None for call in self.tool_calls):
            return True
        return any(line.startswith(_RESULT) and line != _HIDDEN for line in self.said)


def turn_view(
    trace: Trace, index: int, earlier: Sequence[str] = (), base: int | None = None, hide: Hide = lambda trace: trace
) -> TurnView:
    """Makes the view of a trace's ``index``-th turn. ``earlier``: what was said before it in the session, already
    redacted, for a trace whose spans do not show it; ``base``: the number of turns there, ``None``: unknown."""
    one = hide(_with_instructions(of_turn(trace, index), trace))
    told = before(one).said
    own = told or (*earlier, *(line for at in range(index) for line in lines_of(hide(of_turn(trace, at)))))
    # The greater of the session's count and that of the history in the spans.
    number = max(len(_exchanges(told)), (base or 0) + index)
    return TurnView(one, own, number, *facts_of(one, (*one.spans, *trace.spans)))


def _with_instructions(one: Trace, trace: Trace) -> Trace:
    """Adds to a turn the spans around it that state instructions: an agent's span begins with its first turn."""
    own, by_id = {span.span_id for span in one.spans}, {span.span_id: span for span in trace.spans}
    around: dict[str, Span] = {}
    for span in one.spans:
        above = by_id.get(span.parent_id)
        while above is not None and above.span_id not in own and above.span_id not in around:
            around[above.span_id] = above.but(input=None, output=None, documents=(), attributes={})
            above = by_id.get(above.parent_id)
    told = [around[span.span_id] for span in trace.spans if span.span_id in around]
    return replace(one, spans=(*told, *one.spans)) if any(span.system for span in told) else one


def _exchanges(said: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs the user's messages, those in a row as one, with the last answer to each."""
    found: list[tuple[str, str]] = []
    open_ = False
    for line in said:
        if line.startswith(USER):
            text = line.removeprefix(USER)
            if open_:
                found[-1] = f"{found[-1][0]}\n{text}", ""
            else:
                found.append((text, ""))
            open_ = True
            continue
        open_ = False
        if line.startswith(AGENT) and found:
            found[-1] = found[-1][0], line.removeprefix(AGENT)
    return found


# A whole session, joined into one trace, for metrics that judge its outcome.
@dataclass(frozen=True, slots=True)
class Conversation:
    """A session as metrics see it. ``trace``: with the turns and tool calls of all traces; ``missing``: traces that are
    deleted, or too many to be shown; ``owners``: the trace of each span, of several traces; the rest as in
    :class:`pandaeval_collector.judge.turns.TurnView`."""

    trace: Trace
    traces: int
    missing: int = 0
    goal: str = ""
    profile: str = ""
    knowledge: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)


def conversation(traces: Sequence[Trace], digest: str, missing: int = 0) -> Conversation:
    """Joins the ``traces`` of a session (at least one), oldest first. ``digest``: of all of them."""
    if len(traces) == 1 and not missing:  # what is asked about it begins like what was asked about the trace
        return Conversation(traces[0], 1, 0, *facts_of(traces[0], traces[0].spans))
    last = traces[-1]
    tools: dict[tuple[str, tuple[str, ...]], ToolDefinition] = {}
    for trace in traces:
        tools.update(((tool.name, tool.agents), tool) for tool in trace.tools)
    first = opening(traces[0])
    spans: list[Span] = []
    """For the record: with instructions, retrieved documents, and for the first trace the model call that shows what
    came before; without thoughts."""
    for span in (span for trace in traces for span in trace.spans):
        if span is first or not span.input:
            spans.append(span if span.output is None else span.but(output=None))
        else:
            told = tuple(message for message in span.input if message.role == "system")
            spans.append(span.but(input=told or None, output=None))
    whole = replace(
        last,
        spans=tuple(spans),
        input=traces[0].input,
        turns=tuple(
            # With its trace's start and root where it has none of its own, so that calls and spans can be assigned.
            replace(turn, start_ns=turn.start_ns or trace.start_ns, span_id=turn.span_id or trace.root_span_id)
            for trace in traces
            for turn in trace.turns
        ),
        tool_calls=tuple(call for trace in traces for call in trace.tool_calls),
        tools=tuple(tools.values()),
        reasoning=(),
        llm_calls=sum(trace.llm_calls for trace in traces),
        agents=tuple(dict.fromkeys(name for trace in traces for name in trace.agents)),
        dropped_attributes=sum(trace.dropped_attributes for trace in traces),
        notes=tuple(dict.fromkeys(note for trace in traces for note in trace.notes)),
        digest=digest,
    )
    goal, profile, _ = facts_of(whole, [span for trace in traces for span in trace.spans])
    knowledge = tuple(dict.fromkeys(text for trace in traces for text in facts_of(trace, trace.spans)[2]))
    owners = {span.span_id: trace.trace_id for trace in traces for span in trace.spans}
    return Conversation(whole, len(traces), missing, goal, profile, knowledge, owners)


def stated(view: TurnView | Conversation) -> dict[str, str]:
    """Returns what is given with a question beside the record, by name, as far as it is known: goal, profile and
    knowledge."""
    knowledge = "\n".join(f"- {each}" for each in view.knowledge)
    held = {"goal": view.goal, "profile": view.profile, "knowledge": knowledge}
    return {name: text for name, text in held.items() if text}
