"""How far people agree with each other, by the runs that several of them looked at.

Krippendorff's alpha (1970) for pass and fail: 1 where they never differ, 0 where they differ as often as verdicts that
are dealt out at random would. Its interval is the jackknife's over runs. No judge can be expected to agree with people
more than they do among themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.jackknife import jackknifed

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Of ``runs`` with two verdicts or more, ``alike``: those on which all say the same. ``alpha`` is ``None`` where
    every verdict is the same, of which nobody can say whether it is agreement."""

    runs: int
    alike: int
    alpha: float | None
    low: float | None
    high: float | None


def annotator_agreement(verdicts: Sequence[Sequence[bool]]) -> AnnotatorAgreement | None:
    """Computes the agreement from the ``verdicts`` on each run; ``None`` where no run has two."""
    told = [each for each in verdicts if len(each) > 1]
    if not told:
        return None
    people = np.asarray([len(each) for each in told], np.float64)
    passed = np.asarray([sum(each) for each in told], np.float64)
    differing = 2 * passed * (people - passed) / (people - 1)
    found = jackknifed(np.asarray([people, passed, differing]), np.arange(len(told)), _alpha)
    return AnnotatorAgreement(len(told), int((differing == 0).sum()), *found)


def _alpha(sums: Values) -> Values:
    people, passed, differing = sums
    expected = 2 * passed * (people - passed)
    known = expected > 0
    found: Values = 1 - np.divide(differing * (people - 1), expected, out=np.full(people.shape, np.nan), where=known)
    return found
