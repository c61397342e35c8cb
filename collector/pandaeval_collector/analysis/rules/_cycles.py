"""Groups repeated tool calls into cycles: one call again and again, or two or three in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.analysis.rules._repeats import Step
from pandaeval_collector.analysis.rules._verbs import Nature

_KINDS = {1: "repeat", 2: "cycle2", 3: "cycle3"}
_PASSED_OVER = (Nature.WAITING, Nature.THINKING, Nature.HAND_OVER)


@dataclass(frozen=True, slots=True)
class Cycle:
    """``members``: indexes of the calls of all rounds, the first one included; ``wasted`` those of the later rounds
    that brought nothing new. ``rounds`` >= 2."""

    kind: str
    rounds: int
    members: tuple[int, ...]
    wasted: tuple[int, ...]


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
    before = _same_before(steps)
    at = 0
    while at < len(line):
        if steps[line[at]].news:
            cycles.extend(_loose_cycles(loose, steps, before))
            loose = {}
            at += 1
            continue
        period = max(_KINDS, key=lambda period: (runs[period][at], -period))
        length = runs[period][at]
        if length < period:
            loose.setdefault(steps[line[at]].signature, []).append(line[at])
            at += 1
            continue
        cycle = _periodic(steps, line[at - period : at + length], period)
        cycles.extend([cycle] if cycle else [])
        at += length
    cycles.extend(_loose_cycles(loose, steps, before))
    return sorted(cycles, key=lambda cycle: cycle.wasted)


def _runs(steps: Sequence[Step], line: Sequence[int], period: int) -> list[int]:
    """For each place, over how many calls from there on everything equals what came ``period`` calls before."""
    runs = [0] * (len(line) + 1)
    for at in range(len(line) - 1, period - 1, -1):
        here, there = steps[line[at]], steps[line[at - period]]
        if not here.news and here.signature is not None and here.signature == there.signature:
            runs[at] = runs[at + 1] + 1
    return runs


def _periodic(steps: Sequence[Step], members: Sequence[int], period: int) -> Cycle | None:
    wasted = tuple(index for index in members[period:] if steps[index].wasted)
    if not wasted:
        return None
    distinct = len({steps[index].signature for index in wasted})
    return Cycle(_KINDS[period], 1 + max(1, len(wasted) // distinct), tuple(members), wasted)


def _loose_cycles(loose: dict[str | None, list[int]], steps: Sequence[Step], before: Sequence[int]) -> list[Cycle]:
    cycles = []
    for places in loose.values():
        wasted = tuple(index for index in places if steps[index].wasted)
        if wasted:
            cycles.append(Cycle("repeat", 1 + len(wasted), (before[wasted[0]], *wasted), wasted))
    return cycles


def _same_before(steps: Sequence[Step]) -> list[int]:
    """For each step the latest one before it with the same signature, else itself."""
    latest: dict[str | None, int] = {}
    before = []
    for index, step in enumerate(steps):
        before.append(latest.get(step.signature, index))
        latest[step.signature] = index
    return before
