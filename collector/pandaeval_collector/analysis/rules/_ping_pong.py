"""Agents that hand a run to and fro between them without getting anywhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules._canonical import canonical_arguments
from pandaeval_collector.analysis.rules._lineage import agents
from pandaeval_collector.analysis.rules._repeats import Step
from pandaeval_collector.analysis.rules._verbs import Nature
from pandaeval_otel.model import Kind, Reasoning, Span, Text, ToolCall, ToolRequest, ToolResponse, Trace

_ACTING = frozenset({Kind.AGENT, Kind.LLM, Kind.TOOL})
_SPOKEN_FOR = Text | Reasoning | ToolRequest | ToolResponse


@dataclass(slots=True)
class Visit:
    """A stretch of a run in which one agent acts."""

    agent: str
    start_ns: int
    first_span_id: str
    models: list[Span] = field(default_factory=list)

    @property
    def end_ns(self) -> int:
        return max((span.end_ns for span in self.models), default=self.start_ns)


class Visits:
    """The visits of a trace in start order, and in which of them a call was made."""

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
        """Returns the number of the visit in which a call was made; -1 when no agent is named."""
        by_time = bisect_right(self._starts, call.start_ns) - 1
        return self._of_span.get(call.span_id, by_time)


@dataclass(frozen=True, slots=True)
class PingPong:
    """``rounds`` >= 2 of A then B. ``visits``: the visits of all rounds; ``members`` and ``wasted``: indexes of the
    calls that handed over, of all rounds and of those after the first."""

    rounds: int
    visits: tuple[Visit, ...]
    members: tuple[int, ...]
    wasted: tuple[int, ...]


def find_ping_pong(visits: Sequence[Visit], steps: Sequence[Step]) -> list[PingPong]:
    """Finds runs of visits that alternate between two agents, in which from the second round on no visit brought
    anything.

    A visit brought something if it made a call with news, if a model said something that its agent had not said
    before, or if what was said was not captured (then nobody knows). Agents that work at the same time do not hand
    over. Linear.
    """
    if len(visits) < 4:
        return []
    idle = _idle_visits(visits, steps)
    found = []
    first = 0
    for at in range(2, len(visits) + 1):
        goes_on = at < len(visits) and idle[at] and visits[at].agent == visits[at - 2].agent
        if goes_on:
            continue
        if at - first >= 4:
            found.append(_ping_pong(visits, steps, first, at))
        first = at - 1
    return found


def _idle_visits(visits: Sequence[Visit], steps: Sequence[Step]) -> list[bool]:
    repeated = _repeated_delegations(steps)
    working = {
        step.visit
        for index, step in enumerate(steps)
        if step.news and step.nature in (Nature.READING, Nature.CHANGING) and index not in repeated
    }
    handing = {
        step.visit
        for index, step in enumerate(steps)
        if step.signature is not None and (step.nature is Nature.HAND_OVER or index in repeated)
    }
    said: set[tuple[str, str]] = set()
    idle = []
    for number, visit in enumerate(visits):
        nothing_said = _says_nothing_new(visit, said)
        known = bool(visit.models) or number in handing
        after = number == 0 or visits[number - 1].end_ns <= visit.start_ns
        idle.append(known and nothing_said and after and number not in working)
    return idle


def _repeated_delegations(steps: Sequence[Step]) -> set[int]:
    """Indexes of calls that give another agent a task which was given in the same words before, however deep inside
    each other: what comes of them is the other agent's news, or none."""
    given: set[tuple[str, str | None]] = set()
    found: set[int] = set()
    for index, step in enumerate(steps):
        if not step.delegates:
            continue
        task = (step.call.name, canonical_arguments(step.call.arguments))
        if task in given and task[1] is not None:
            found.add(index)
        given.add(task)
    return found


def _says_nothing_new(visit: Visit, said: set[tuple[str, str]]) -> bool:
    nothing = True
    for model in visit.models:
        if model.output is None:
            return False
        for message in model.output:
            words = (visit.agent, " ".join(message.text.casefold().split()))
            if not all(isinstance(part, _SPOKEN_FOR) for part in message.parts) or (words[1] and words not in said):
                nothing = False
            said.add(words)
    return nothing


def _ping_pong(visits: Sequence[Visit], steps: Sequence[Step], first: int, end: int) -> PingPong:
    members = [
        index
        for index, step in enumerate(steps)
        if (step.nature is Nature.HAND_OVER or step.delegates) and first <= step.visit < end
    ]
    wasted = tuple(index for index in members[1:] if steps[index].visit >= first + 2)
    return PingPong((end - first) // 2, tuple(visits[first:end]), tuple(members), wasted)
