"""One turn of a conversation, as metrics of level turn see it: after Agentest's ``ScoreInput``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.judge.before import AGENT, USER, before, lines_of
from pandaeval_collector.judge.turns.stated import goal_of, knowledge_of, profile_of
from pandaeval_otel.model import Span, ToolCall, Trace
from pandaeval_otel.normal.turns import of_turn

_RESULT, _HIDDEN = "result: ", "result: (not captured)"
Hide = Callable[[Trace], Trace]
"""A trace with what is not to be seen taken out of its texts."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """``trace``: as if this turn were all of it; ``said``: the conversation before it, oldest first, one text for each
    thing that was said, called or given back. ``turn_index``: 0-based in what is known of the conversation. ``goal``,
    ``profile``: ``""`` where nothing states them; ``knowledge``: what is stated to be known, and the documents that
    were found in this turn."""

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
        """The span that answers."""
        return self.trace.turns[0].span_id or self.trace.root_span_id

    @property
    def history(self) -> tuple[tuple[str, str], ...]:
        """What the user said and the agent answered in each turn before, oldest first."""
        return tuple(_exchanges(self.said))

    @property
    def has_results(self) -> bool:
        """Whether a result of a tool is known, of this turn or one before."""
        if any(call.has_result and call.result is not None for call in self.tool_calls):
            return True
        return any(line.startswith(_RESULT) and line != _HIDDEN for line in self.said)


def turn_view(
    trace: Trace, index: int, earlier: Sequence[str] = (), base: int | None = None, hide: Hide = lambda trace: trace
) -> TurnView:
    """The ``index``-th turn of a trace. ``earlier``: what was said in the traces of the session before it, hidden
    already, for one whose spans do not tell; ``base``: the number of turns there, ``None``: not known."""
    one = hide(_with_instructions(of_turn(trace, index), trace))
    told = before(one).said
    own = told or (*earlier, *(line for at in range(index) for line in lines_of(hide(of_turn(trace, at)))))
    stating = (*one.spans, *trace.spans)
    return TurnView(
        one,
        own,
        _number(index, base, told),
        goal_of(stating),
        profile_of(stating),
        knowledge_of(one, stating),
    )


def _with_instructions(one: Trace, trace: Trace) -> Trace:
    """The turn with the spans around it that state instructions: an agent's span begins with its first turn."""
    own, by_id = {span.span_id for span in one.spans}, {span.span_id: span for span in trace.spans}
    around: dict[str, Span] = {}
    for span in one.spans:
        above = by_id.get(span.parent_id)
        while above is not None and above.span_id not in own and above.span_id not in around:
            around[above.span_id] = above.but(input=None, output=None, documents=(), attributes={})
            above = by_id.get(above.parent_id)
    told = [around[span.span_id] for span in trace.spans if span.span_id in around]
    return replace(one, spans=(*told, *one.spans)) if any(span.system for span in told) else one


def _number(index: int, base: int | None, told: Sequence[str]) -> int:
    """The greater of what the session and what the history in the spans tell; from 0 in what is known."""
    if told:
        return max(len(_exchanges(told)), (base or 0) + index)
    return (base or 0) + index


def _exchanges(said: Sequence[str]) -> list[tuple[str, str]]:
    """What users said, messages in a row as one, each with the last answer to it."""
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
