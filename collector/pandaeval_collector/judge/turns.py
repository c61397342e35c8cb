"""Shows turn metrics a turn with the prior conversation; after Agentest's ``ScoreInput``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.judge.context import AGENT, USER, before, lines_of
from pandaeval_collector.judge.conversation import Conversation, facts_of
from pandaeval_otel.model import Span, ToolCall, Trace
from pandaeval_otel.normal.turns import of_turn

_RESULT, _HIDDEN = "result: ", "result: (not captured)"
Hide = Callable[[Trace], Trace]
"""Redacts the texts of a trace."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn for turn metrics.

    ``trace``: as if only this turn existed. ``said``: prior conversation, oldest first. ``turn_index``: 0-based.
    ``goal``, ``profile``: ``""`` if not stated. ``knowledge``: with this turn's documents. ``record``: the whole trace,
    if the judge receives it.
    """

    trace: Trace
    said: tuple[str, ...] = ()
    turn_index: int = 0
    goal: str = ""
    profile: str = ""
    knowledge: tuple[str, ...] = ()
    record: tuple[Trace, int] | None = None

    @property
    def shown_calls(self) -> tuple[ToolCall, ...]:
        """The calls, as numbered for the judge."""
        return self.tool_calls if self.record is None else self.record[0].tool_calls

    @property
    def user_message(self) -> str | None:
        """The user's message; ``None``: not captured."""
        return self.trace.turns[0].user

    @property
    def agent_message(self) -> str | None:
        """The agent's answer; ``None``: not captured or missing."""
        return self.trace.turns[0].assistant

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """This turn's calls in order, with ``name``, ``arguments`` and ``result``."""
        return self.trace.tool_calls

    @property
    def span_id(self) -> str:
        return self.trace.turns[0].span_id or self.trace.root_span_id

    @property
    def history(self) -> tuple[tuple[str, str], ...]:
        """User message and answer of each earlier turn, oldest first."""
        return tuple(_exchanges(self.said))

    @property
    def has_results(self) -> bool:
        if any(call.has_result and call.result is not None for call in self.tool_calls):
            return True
        return any(line.startswith(_RESULT) and line != _HIDDEN for line in self.said)


def turn_view(
    trace: Trace, index: int, earlier: Sequence[str] = (), base: int | None = None, hide: Hide = lambda trace: trace
) -> TurnView:
    """Make the view of a trace's ``index``-th turn.

    ``earlier``: redacted session conversation. ``base``: its turns, ``None``: unknown.
    """
    one = hide(_with_instructions(of_turn(trace, index), trace))
    history = before(one).said
    own = history or (*earlier, *(line for at in range(index) for line in lines_of(hide(of_turn(trace, at)))))
    # The larger of two counts: the session's, and the history in the spans.
    number = max(len(_exchanges(history)), (base or 0) + index)
    return TurnView(one, own, number, *facts_of(one, (*one.spans, *trace.spans)))


def _with_instructions(one: Trace, trace: Trace) -> Trace:
    own, by_id = {span.span_id for span in one.spans}, {span.span_id: span for span in trace.spans}
    around: dict[str, Span] = {}
    for span in one.spans:
        above = by_id.get(span.parent_id)
        while above is not None and above.span_id not in own and above.span_id not in around:
            around[above.span_id] = above.but(input=None, output=None, documents=(), attributes={})
            above = by_id.get(above.parent_id)
    outer_spans = [around[span.span_id] for span in trace.spans if span.span_id in around]
    return replace(one, spans=(*outer_spans, *one.spans)) if any(span.system for span in outer_spans) else one


def _exchanges(history: Sequence[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    open_ = False
    for line in history:
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


def stated(view: TurnView | Conversation) -> dict[str, str]:
    knowledge = "\n".join(f"- {each}" for each in view.knowledge)
    held = {"goal": view.goal, "profile": view.profile, "knowledge": knowledge}
    return {name: text for name, text in held.items() if text}
