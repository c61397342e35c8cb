"""Finds repeated tool calls without news, and their cycles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules._canonical import canonical_arguments, is_acknowledgement, same_answer
from pandaeval_collector.analysis.rules._code_runs import NAME as CODE
from pandaeval_collector.analysis.rules._failure_text import LOOKED_AT
from pandaeval_collector.analysis.rules._failures import as_object, error_of, failed, reports_not_found
from pandaeval_collector.analysis.rules._verbs import Nature, is_stepwise
from pandaeval_collector.analysis.rules._visits import Visit
from pandaeval_otel.model import Reasoning, Text, ToolCall, ToolRequest, ToolResponse

POLL_WAIT_S = 2.0
"""An idle wait of this many seconds between a call and the same call again makes it polling."""
RETRY_WAIT_S = 1.0
"""An idle wait of this many seconds after a failed call makes the same call a retry with back-off."""
UNKNOWN_WAIT_S = 10.0
"""Like ``POLL_WAIT_S``, if the trace does not show the work of models and tools meanwhile."""
GROWTH = 1.5
LEAST_GROWING_S = 0.25
"""After failures, waits growing by this factor count as back-off, from this length in seconds."""
CAUTIOUS_ROUNDS = 3
"""With weak evidence, this many equal calls in a row are needed. Evidence is weak without a captured result, for
possible changes, failed calls and rewordings.
"""
_VALUE = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`|(?<!\w)[^\s\d/\\@#]{0,300}+[\d/\\@#]\S*")
_STATUS = re.compile(r"\W*[1-5]\d\d\W*")
_TELLING = re.compile(r"[^\W\d_]{3,}")
_TELLS_NOTHING = frozenset(
    """
    error errors exception failed failure fails exit exited code status command tool call function execution non zero
    returned with the while executing running result output stdout stderr none null message process
    """.split()  # noqa: SIM905 - a readable list of words
)
# Agents that pass a run back and forth without progress.
_SPOKEN_FOR = Text | Reasoning | ToolRequest | ToolResponse
_KINDS = {1: "repeat", 2: "cycle2", 3: "cycle3"}
_PASSED_OVER = (Nature.WAITING, Nature.THINKING, Nature.HAND_OVER)


@dataclass(slots=True)
class Step:
    """A tool call with its analysis.

    ``signature``: equal for equivalent calls; ``None`` if unknown. ``turn``, ``visit``: numbers of user turn and agent
    change. ``idle_s``: preceding seconds without work; ``idle_known`` if proven. ``wasted``: a repetition.
    ``asked_by``: number of the requesting model call, 0 if unknown. ``stale``: rewords an earlier call and shares its
    ``signature``. ``delegates``: another agent worked inside.
    """

    call: ToolCall
    nature: Nature
    signature: str | None
    turn: int
    visit: int
    asked_by: int = 0
    idle_s: float = 0.0
    idle_known: bool = True
    news: bool = True
    wasted: bool = False
    stale: bool = False
    delegates: bool = False


@dataclass(slots=True)
class _Chain:
    """A series of equal calls. ``repeats``: wasted calls since the last state change."""

    last: int
    state: int
    length: int = 1
    idle_s: float = 0.0
    growths: int = 0
    pending: list[Step] = field(default_factory=list)
    repeats: list[Step] = field(default_factory=list)

    def repeat(self, index: int, step: Step, weak: bool) -> None:
        self.last = index
        self.length += 1
        self.pending.append(step)
        if weak and self.length < CAUTIOUS_ROUNDS:
            return
        for repeat in self.pending:
            repeat.wasted = True
        self.repeats.extend(self.pending)
        self.pending.clear()


class RepeatMarker:
    """Marks repeated steps, in linear time."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._chains: dict[str, _Chain] = {}
        self._state = 0  # increases whenever a call may have changed data
        self._last_news = -1
        self._last_wait = -1

    def mark(self) -> None:
        turn = 0
        for index, step in enumerate(self._steps):
            if step.turn != turn:
                turn = step.turn
                self._state += 1
            if step.idle_s >= (POLL_WAIT_S if step.idle_known else UNKNOWN_WAIT_S):
                self._last_wait = index
            if step.nature is Nature.WAITING:
                step.news = False
                self._last_wait = index
                continue
            if step.signature is not None:
                self._follow(index, step, step.signature)
            if step.news and step.nature in (Nature.READING, Nature.CHANGING):
                self._last_news = index
            if step.nature is Nature.CHANGING and not failed(step.call):
                self._state += 1
                if step.signature is not None:
                    self._chains[step.signature].state = self._state

    def _follow(self, index: int, step: Step, signature: str) -> None:
        chain = self._chains.get(signature)
        if chain is None:
            self._chains[signature] = _Chain(index, self._state)
            return
        before = self._steps[chain.last]
        same = True if step.stale else same_answer(before.call, step.call)
        step.news = same is False or (same is None and step.nature is Nature.CHANGING)
        if same is False:
            _forgive(chain)  # the answer changed in the end, so the calls before were waiting for that
            self._chains[signature] = _Chain(index, self._state)
        elif chain.state == self._state and _at_once(before, step):
            chain.last = index  # the answer could not be known yet
        elif chain.state != self._state or not self._may_repeat(chain, before, step, same):
            self._chains[signature] = _Chain(index, self._state)
        elif self._waited(chain, before, step):
            self._chains[signature] = _Chain(
                index, self._state, idle_s=chain.idle_s, growths=chain.growths, repeats=chain.repeats
            )
        else:
            weak = same is None or step.stale or step.nature is Nature.CHANGING or failed(step.call)
            chain.repeat(index, step, weak)

    def _may_repeat(self, chain: _Chain, before: Step, step: Step, same: bool | None) -> bool:
        if same is None and step.nature is Nature.CHANGING:
            return False
        if step.nature is Nature.THINKING:  # a later repetition of a note is fine; an immediate repetition counts
            return self._steps[chain.last + 1] is step
        if step.nature is Nature.HAND_OVER:
            return step.visit == before.visit and self._last_news <= chain.last
        if step.stale and failed(step.call):  # the agent may have learned the cause between two equal failures
            return self._last_news <= chain.last
        if step.nature is not Nature.CHANGING or failed(step.call):
            return True
        if is_stepwise(step.call.name) and is_acknowledgement(step.call.result):
            return False
        return self._last_news <= chain.last

    def _waited(self, chain: _Chain, before: Step, step: Step) -> bool:
        grew = chain.idle_s >= LEAST_GROWING_S and step.idle_s >= GROWTH * chain.idle_s
        chain.growths = chain.growths + 1 if grew else 0
        chain.idle_s = step.idle_s
        if failed(before.call):
            if chain.growths >= (1 if step.idle_known else 2):
                _forgive(chain)
                return True
            if step.idle_known and step.idle_s >= RETRY_WAIT_S:
                return True
        return self._last_wait > chain.last


def _forgive(chain: _Chain) -> None:
    for repeat in chain.repeats:
        repeat.wasted = False
    chain.repeats.clear()


def masked_reason(call: ToolCall) -> str:
    """Return why a call failed, without specific values; ``""`` if unknown."""
    text = error_of(call).strip()
    if "Traceback (most recent" in text[:LOOKED_AT]:
        text = text[-LOOKED_AT:].rsplit("\n", 1)[-1]
    text = _VALUE.sub(lambda held: held[0] if _STATUS.fullmatch(held[0]) else "#", text[:LOOKED_AT])
    given = as_object(call.arguments) or call.arguments
    for value in given.values() if isinstance(given, dict) else ():
        if isinstance(value, str) and len(value) > 2:
            text = text.replace(value, "#")
    text = " ".join(text.casefold().split())
    return text if {*_TELLING.findall(text)} - _TELLS_NOTHING else ""


def find_failing(steps: Sequence[Step], known: Sequence[Cycle]) -> list[Cycle]:
    """Find tools that fail at least three times in a row for the same reason.

    A success, another failure, a wait or a user message ends the row. Parallel calls count once. "Not found" of a
    lookup is no failure. ``known`` repeats are skipped.
    """
    wasted = {index for cycle in known for index in cycle.wasted}
    cycles: list[Cycle] = []
    for row in _failing_rows(steps):
        repeats = tuple(index for index in row[1:] if index not in wasted)
        if len(row) >= CAUTIOUS_ROUNDS and repeats:
            cycles.append(Cycle("failing", len(row), tuple(row), repeats))
    return sorted(cycles, key=lambda cycle: cycle.wasted)


def _failing_rows(steps: Sequence[Step]) -> list[list[int]]:
    latest: dict[tuple[str, str], tuple[str, list[int]]] = {}
    rows: list[list[int]] = []
    waited = -1
    for index, step in enumerate(steps):
        if step.nature is Nature.WAITING or step.idle_s >= (RETRY_WAIT_S if step.idle_known else UNKNOWN_WAIT_S):
            waited = index
        reason = _failure(step)
        reason_before, row = latest.get((step.call.agent, step.call.name), ("", []))
        before = steps[row[-1]] if row else step
        if row and step.signature is not None and step.signature == before.signature:
            continue  # the same call again has rules of its own
        continues = row and reason and reason == reason_before and before.turn == step.turn and waited <= row[-1]
        if not continues:
            rows.append([index] if reason else [])
            latest[step.call.agent, step.call.name] = reason, rows[-1]
        elif not _at_once(before, step):
            row.append(index)
    return rows


def _failure(step: Step) -> str:
    if (
        step.call.name == CODE
        or not failed(step.call)
        or (step.nature is Nature.READING and reports_not_found(step.call))
    ):
        return ""
    return masked_reason(step.call)


def _at_once(before: Step, step: Step) -> bool:
    return step.call.start_ns < before.call.end_ns or bool(step.asked_by and step.asked_by == before.asked_by)


@dataclass(frozen=True, slots=True)
class Cycle:
    """Calls repeated in ``rounds`` >= 2.

    ``members``: indexes of all calls. ``wasted``: later calls without news. ``visits``: of a ping-pong.
    """

    kind: str
    rounds: int
    members: tuple[int, ...]
    wasted: tuple[int, ...]
    visits: tuple[Visit, ...] = ()


def find_ping_pong(visits: Sequence[Visit], steps: Sequence[Step]) -> list[Cycle]:
    """Find visits that alternate between two agents without progress from the second round on. Linear."""
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
    """Calls that repeat a task to another agent in the same words. Their news belongs to that agent."""
    given: set[tuple[str, str]] = set()
    for index, step in enumerate(steps):
        if step.delegates and (arguments := canonical_arguments(step.call.arguments)) is not None:
            repeated |= {index} if (step.call.name, arguments) in given else set()
            given.add((step.call.name, arguments))
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
    messages: set[tuple[str, str]] = set()
    idle = []
    for number, visit in enumerate(visits):
        nothing_said = _says_nothing_new(visit, messages)
        known = bool(visit.models) or number in handing
        after = number == 0 or visits[number - 1].end_ns <= visit.start_ns
        idle.append(known and nothing_said and after and number not in working)
    return idle


def _says_nothing_new(visit: Visit, messages: set[tuple[str, str]]) -> bool:
    nothing = True
    for model in visit.models:
        if model.output is None:
            return False
        for message in model.output:
            words = (visit.agent, " ".join(message.text.casefold().split()))
            if not all(isinstance(part, _SPOKEN_FOR) for part in message.parts) or (words[1] and words not in messages):
                nothing = False
            messages.add(words)
    return nothing


def find_cycles(steps: Sequence[Step]) -> list[Cycle]:
    """Assign every wasted step to a cycle, by first appearance. Linear. A call with news ends a cycle."""
    return sorted(_CycleSearch(steps).found(), key=lambda cycle: cycle.wasted)


class _CycleSearch:
    """Visits the steps that can be part of a cycle. ``loose``: repeats outside runs, by signature."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._cycles: list[Cycle] = []
        self._steps = steps
        self._line = [i for i, step in enumerate(steps) if step.wasted or step.nature not in _PASSED_OVER]
        self._lengths = {period: _runs(steps, self._line, period) for period in _KINDS}
        self._before = _equal_before(steps)
        self._loose: dict[str | None, list[int]] = {}

    def found(self) -> list[Cycle]:
        at = 0
        while at < len(self._line):
            at += self._take(at)
        self._end_loose()
        return self._cycles

    def _take(self, at: int) -> int:
        """Assign the step at a place, or a run that begins there. Returns the number of these steps."""
        step = self._steps[self._line[at]]
        if step.news:
            self._end_loose()
            return 1
        period = max(_KINDS, key=lambda period: (self._lengths[period][at], -period))
        length = self._lengths[period][at]
        if length < period:
            self._loose.setdefault(step.signature, []).append(self._line[at])
            return 1
        members = self._line[at - period : at + length]
        if wasted := self._wasted(members[period:]):
            distinct = len({self._steps[index].signature for index in wasted})
            self._cycles.append(Cycle(_KINDS[period], 1 + max(1, len(wasted) // distinct), tuple(members), wasted))
        return length

    def _end_loose(self) -> None:
        for places in self._loose.values():
            if repeats := self._wasted(places):
                self._cycles.append(Cycle("repeat", 1 + len(repeats), (self._before[repeats[0]], *repeats), repeats))
        self._loose.clear()

    def _wasted(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(index for index in places if self._steps[index].wasted)


def _equal_before(steps: Sequence[Step]) -> list[int]:
    """Return for each step the index of the latest earlier step with the same signature, or its own index."""
    before: list[int] = []
    latest: dict[str | None, int] = {}
    for index, step in enumerate(steps):
        before.append(latest.get(step.signature, index))
        latest[step.signature] = index
    return before


def _runs(steps: Sequence[Step], line: Sequence[int], period: int) -> list[int]:
    runs = [0] * (len(line) + 1)
    for at in range(len(line) - 1, period - 1, -1):
        here, there = steps[line[at]], steps[line[at - period]]
        if not here.news and here.signature is not None and here.signature == there.signature:
            runs[at] = runs[at + 1] + 1
    return runs
