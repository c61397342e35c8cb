"""Tries judge rulings against human labels.

Labelled runs are split by session into halves. The ruling with the best gain on the first half is tested once on the
other half. The ruling is proven if the interval of its gain on the other half is above zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate

Judging = Callable[[str, Sequence["LabelledRun"]], Mapping[str, "JudgedUnit"]]
"""Judges runs with an added ruling (``""``: none); returns the verdicts by unit."""
Proposing = Callable[[Sequence[tuple["LabelledRun", "JudgedUnit"]]], Sequence[str]]
"""Proposes rulings for runs that the judge got wrong."""
LEAST = 40
"""Minimum number of labelled runs. Half of a smaller number cannot prove a gain."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    unit: str
    passed: bool
    session: str = ""
    comment: str = ""

    @property
    def held_out(self) -> bool:
        """Whether the run is in the held-out half; a session's runs stay together."""
        return hashlib.blake2b(f"held out {self.session or self.unit}".encode(), digest_size=1).digest()[0] % 2 == 1


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """A judge's verdict on a run (``None``: no verdict), and its reason."""

    passed: bool | None
    reason: str = ""


@dataclass(slots=True)
class TriedRuling:
    """A ruling and its gain on the first half (``seen``) and the other half (``held_out``).

    ``why``: reason against it, or ``""``.
    """

    text: str
    source: str
    seen: VerdictChange
    held_out: VerdictChange | None = None
    why: str = "another ruling was better"


@dataclass(slots=True)
class Alignment:
    runs: int
    seen: int
    errors: int
    tried: list[TriedRuling] = field(default_factory=list)

    @property
    def proven(self) -> TriedRuling | None:
        return next((each for each in self.tried if not each.why), None)


def align(
    runs: Sequence[LabelledRun],
    judging: Judging,
    written: Sequence[str] = (),
    proposing: Proposing = lambda errors: (),
) -> Alignment:
    """Try rulings. Raises ``ValueError`` below :data:`LEAST` runs, and if a half is empty."""
    if len(runs) < LEAST:
        raise ValueError(f"needs at least {LEAST} labelled runs in the input, but there are only {len(runs)}")
    seen, other = ([run for run in runs if run.held_out == half] for half in (False, True))
    if not seen or not other:
        raise ValueError("all labelled runs are in one half, because each session is in one half; label more sessions")
    now = judging("", runs)
    errors = [(run, now[run.unit]) for run in seen if run.unit in now and now[run.unit].passed is not run.passed]
    found = Alignment(len(runs), len(seen), len(errors))
    proposed = [(text, "judge") for text in proposing(errors)] if errors else []
    for text, source in [*((text, "people") for text in written), *proposed]:
        found.tried.append(TriedRuling(text, source, _change(seen, now, judging(text, seen))))
    best = max(found.tried, key=lambda tried: tried.seen.gain, default=None)
    if best is None:
        return found
    if best.seen.gain <= 0:
        best.why = "no gain on the first half of the labels"
        return found
    best.held_out = _change(other, now, judging(best.text, other))
    best.why = "" if best.held_out.proven else "no gain is proven on the other half of the labels"
    return found


def _change(
    runs: Sequence[LabelledRun], now: Mapping[str, JudgedUnit], then: Mapping[str, JudgedUnit]
) -> VerdictChange:
    nothing = JudgedUnit(None)
    before, after = (
        [judged_units.get(run.unit, nothing).passed is run.passed for run in runs] for judged_units in (now, then)
    )
    return verdict_change(before, after, [run.session or run.unit for run in runs])


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """Comparison of two ways of judging. ``low`` to ``high``: 95 % interval of the gain, or ``None``."""

    n: int
    before: int
    after: int
    low: float | None
    high: float | None

    @property
    def gain(self) -> float:
        return (self.after - self.before) / self.n

    @property
    def proven(self) -> bool:
        return self.low is not None and self.low > 0.0


def verdict_change(before: Sequence[bool], after: Sequence[bool], clusters: Sequence[object]) -> VerdictChange:
    """Compare two judgements of runs (at least one) with people's labels. ``clusters``: sessions of the runs."""
    n = len(before)
    apart = [at for at in range(n) if before[at] != after[at]]
    if len(apart) < 2:
        return VerdictChange(n, sum(before), sum(after), None, None)
    better = [float(after[at]) for at in apart]
    rate = label_rate(Labelled.of(better, better, None, [clusters[at] for at in apart]))
    low, high = ((2.0 * end - 1.0) * len(apart) / n for end in (rate.low, rate.high))
    return VerdictChange(n, sum(before), sum(after), low, high)
