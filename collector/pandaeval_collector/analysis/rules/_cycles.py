"""Calls that go round: two tools that take turns, and longer circles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules._canonical import canonical_arguments
from pandaeval_collector.analysis.rules._repeats import Step
from pandaeval_collector.analysis.rules._verbs import Nature
from pandaeval_otel.model import Kind, Reasoning, Span, Text, ToolCall, ToolRequest, ToolResponse, Trace


# What a span takes over from the spans above it: the agent at work, and the tool call that it happens inside.
def agents(spans: Sequence[Span]) -> dict[str, str]:
    """Maps each span id to the agent at work: the span's own, else the nearest one above it; ``""`` where none is
    named."""
    return _inherited({span.span_id: span for span in spans}, lambda span: span.agent_name)


def contexts(spans: Sequence[Span]) -> dict[str, str]:
    """Maps each span id to the tool call inside which an agent of its own did it; ``""`` or nothing for spans of the
    outermost agents. The tool calls are the nearest ones above each agent.

    An agent that was started as a tool knows nothing of others that were started so, even of its own name.
    """
    by_id = {span.span_id: span for span in spans}
    if not any(span.kind is Kind.AGENT and span.parent_id in by_id for span in spans):
        return {}  # as mostly
    tools = _inherited(by_id, lambda span: span.span_id if span.kind is Kind.TOOL else "")
    return _inherited(by_id, lambda span: tools.get(span.parent_id, "") if span.kind is Kind.AGENT else "")


def _inherited(by_id: Mapping[str, Span], own: Callable[[Span], str]) -> dict[str, str]:
    """Maps each span to its own value, else to that of the nearest span above it with one. Visits each span once;
    parent loops and missing parents end the search."""
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


# Agents that hand a run to and fro between them without getting anywhere.
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
    """The visits of a trace in start order; :meth:`of` tells in which of them a call was made."""

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
class Cycle:
    """Calls that go round, ``rounds`` >= 2 times. ``members``: indexes of the calls of all rounds, the first included;
    ``wasted``: of the later ones that brought nothing new. Of a ping-pong the ``visits`` of all rounds, and as calls
    those that handed over."""

    kind: str
    rounds: int
    members: tuple[int, ...]
    wasted: tuple[int, ...]
    visits: tuple[Visit, ...] = ()


def find_ping_pong(visits: Sequence[Visit], steps: Sequence[Step]) -> list[Cycle]:
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
        if at < len(visits) and idle[at] and visits[at].agent == visits[at - 2].agent:
            continue
        if at - first >= 4:
            members = tuple(
                index
                for index, step in enumerate(steps)
                if (step.nature is Nature.HAND_OVER or step.delegates) and first <= step.visit < at
            )
            wasted = tuple(index for index in members[1:] if steps[index].visit >= first + 2)
            found.append(Cycle("ping_pong", (at - first) // 2, members, wasted, tuple(visits[first:at])))
        first = at - 1
    return found


def _idle_visits(visits: Sequence[Visit], steps: Sequence[Step]) -> list[bool]:
    repeated: set[int] = set()
    """Calls that give another agent a task in the same words as before, however deeply nested: any news in them is that
    agent's."""
    given: set[tuple[str, str]] = set()
    for index, step in enumerate(steps):
        if step.delegates and (told := canonical_arguments(step.call.arguments)) is not None:
            repeated |= {index} if (step.call.name, told) in given else set()
            given.add((step.call.name, told))
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


_KINDS = {1: "repeat", 2: "cycle2", 3: "cycle3"}
_PASSED_OVER = (Nature.WAITING, Nature.THINKING, Nature.HAND_OVER)


def find_cycles(steps: Sequence[Step]) -> list[Cycle]:
    """Puts every wasted step into exactly one cycle, in order of first appearance. Linear in the number of steps.

    A cycle never reaches over a call that brought news: an agent that looks a thing up again between new findings
    wastes a call each time, but it is not stuck. Repetition without a period of 1 to 3 (five calls in turn, say) is
    reported as one ``repeat`` per call.
    """
    line = [i for i, step in enumerate(steps) if step.wasted or step.nature not in _PASSED_OVER]
    runs = {period: _runs(steps, line, period) for period in _KINDS}
    cycles: list[Cycle] = []
    loose: dict[str | None, list[int]] = {}
    latest: dict[str | None, int] = {}
    before = []
    """For each step the index of the latest earlier step with the same signature, else its own."""
    for index, step in enumerate(steps):
        before.append(latest.get(step.signature, index))
        latest[step.signature] = index

    def end_loose() -> None:
        """Ends the cycles of single calls between those that go round."""
        repeats = (tuple(index for index in places if steps[index].wasted) for places in loose.values())
        cycles.extend(Cycle("repeat", 1 + len(each), (before[each[0]], *each), each) for each in repeats if each)
        loose.clear()

    at = 0
    while at < len(line):
        if steps[line[at]].news:
            end_loose()
            at += 1
            continue
        period = max(_KINDS, key=lambda period: (runs[period][at], -period))
        length = runs[period][at]
        if length < period:
            loose.setdefault(steps[line[at]].signature, []).append(line[at])
            at += 1
            continue
        members = line[at - period : at + length]
        if wasted := tuple(index for index in members[period:] if steps[index].wasted):
            distinct = len({steps[index].signature for index in wasted})
            cycles.append(Cycle(_KINDS[period], 1 + max(1, len(wasted) // distinct), tuple(members), wasted))
        at += length
    end_loose()
    return sorted(cycles, key=lambda cycle: cycle.wasted)


def _runs(steps: Sequence[Step], line: Sequence[int], period: int) -> list[int]:
    """Returns for each place how many calls from there on equal those ``period`` calls before."""
    runs = [0] * (len(line) + 1)
    for at in range(len(line) - 1, period - 1, -1):
        here, there = steps[line[at]], steps[line[at - period]]
        if not here.news and here.signature is not None and here.signature == there.signature:
            runs[at] = runs[at + 1] + 1
    return runs
