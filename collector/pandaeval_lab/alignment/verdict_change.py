"""Compares two ways of judging the same runs: which is nearer to people?

Runs that both judge rightly, or both wrongly, show nothing. Of the others, a share of one half that the new way gets
right means that the two are equally good. The interval is that of a rate by labels alone (Wilson's with the effective
number of sessions and Student's quantile), so that a handful of runs proves nothing: seven of seven do, six of six do
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A comparison of two ways of judging ``n`` labelled runs. ``before`` and ``after``: how many were judged as people
    do; ``differ``: on how many only one way was right. ``low`` to ``high``: 95 % interval of the gain in that share;
    ``None`` where it cannot be told."""

    n: int
    before: int
    after: int
    differ: int
    low: float | None
    high: float | None

    @property
    def gain(self) -> float:
        return (self.after - self.before) / self.n

    @property
    def proven(self) -> bool:
        """Whether the new way is credibly better."""
        return self.low is not None and self.low > 0.0


def verdict_change(before: Sequence[bool], after: Sequence[bool], clusters: Sequence[object]) -> VerdictChange:
    """Compares two ways of judging. ``before``, ``after``: by run, of which there is one at least, whether it was
    judged as people do; ``clusters``: its session."""
    n = len(before)
    apart = [at for at in range(n) if before[at] != after[at]]
    found = VerdictChange(n, sum(before), sum(after), len(apart), None, None)
    if len(apart) < 2:
        return found
    better = [float(after[at]) for at in apart]
    rate = label_rate(Labelled.of(better, better, None, [clusters[at] for at in apart]))
    low, high = ((2.0 * end - 1.0) * len(apart) / n for end in (rate.low, rate.high))
    return VerdictChange(n, found.before, found.after, len(apart), low, high)
