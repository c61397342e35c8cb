"""Where may a cheap judge's verdict stand, so that a strong one would rarely have said something else?

The cheap judge's score is the surer the farther it lies from the threshold, on either side in parts of what there is.
From the surest on, ever more of its verdicts are let stand, as long as the upper confidence bound of the share of runs
in which they differ from the strong judge's (Clopper and Pearson 1934) stays within what was promised. Since that share
can only grow on the way, stopping at the first bound that is too high needs no correction for looking often (a
risk-controlling cut, Bates et al. 2021, arXiv 2101.02703): in nine of ten calibrations the promise holds for runs like
these, whatever the two judges are like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pandaeval_collector.analysis.stats.quantiles import beta_quantile

AGREE, SURE = 0.95, 0.9
"""What is promised, and in what share of calibrations the promise holds."""


@dataclass(frozen=True, slots=True)
class CascadeRule:
    """The cheap judge decides up to ``low`` and from ``high`` on. Of the ``n`` runs by which this was found the strong
    one would have been asked in ``asked`` (a share), and the cascade said what the strong one says in ``agreed``."""

    low: float
    high: float
    n: int
    asked: float
    agreed: float

    def decides(self, score: float) -> bool:
        """Whether the cheap judge's score stands."""
        return score <= self.low + 1e-9 or score >= self.high - 1e-9


def cascade_rule(
    cheap: Sequence[float], strong: Sequence[bool], threshold: float, agree: float = AGREE, sure: float = SURE
) -> CascadeRule | None:
    """Finds the widest rule that keeps the promise. ``strong``: whether the strong judge passes each run. ``None``
    where the runs are too few to promise anything of any verdict."""
    scores, passed = np.asarray(cheap, np.float64), np.asarray(strong, bool)
    n, differs = len(scores), (scores >= threshold - 1e-9) != passed
    span = np.where(scores >= threshold, 1.0 - threshold, threshold)
    sureness = np.abs(scores - threshold) / np.maximum(span, 1e-9)
    found = None
    for cut in sorted({*np.round(sureness, 9).tolist()}, reverse=True):
        stands = sureness >= cut - 1e-9
        errors = int((stands & differs).sum())
        if errors >= n or beta_quantile(errors + 1.0, n - errors, sure) > 1.0 - agree:
            break
        low, high = threshold - cut * threshold, threshold + cut * (1.0 - threshold)
        found = CascadeRule(round(low, 6), round(high, 6), n, float(1.0 - stands.mean()), 1.0 - errors / n)
    return found
