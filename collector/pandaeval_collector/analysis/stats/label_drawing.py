"""Which runs people should look at next: half of the effort at random, half near the judge's threshold, each run with a
known chance.

Runs are ranked by a number that follows from their id, divided by how much each is wanted; the first ones are drawn
(sequential Poisson sampling, Ohlsson 1998; priority sampling, Duffield, Lund and Thorup 2007). The chance of a run is
how much it is wanted times the rank of the first that was not drawn, and estimates weigh by one over it. Who is drawn
does not depend on who asks, nor on what was drawn before: a later, larger draw holds every earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_REACH = 0.15
"""How far from the threshold the interest in a run falls to a third."""

Values = NDArray[np.float64]


def wanted(scores: Values, thresholds: Values) -> Values:
    """Returns how much each run is wanted; the sum is 1. No run is wanted less than half as much as by chance alone."""
    near = np.exp(-np.abs(scores - thresholds) / _REACH)
    found: Values = 0.5 / len(scores) + 0.5 * near / near.sum()
    return found


def drawn(numbers: Values, wants: Values, is_open: NDArray[np.bool_], count: int) -> tuple[NDArray[np.int64], Values]:
    """Draws at most ``count`` of the runs that nobody has labelled: returns their places, the most wanted first, and
    the chance of every run to be drawn so far. ``numbers``: of :func:`number`."""
    ranks = numbers / wants
    waiting = np.flatnonzero(is_open)
    waiting = waiting[np.argsort(ranks[waiting], kind="stable")]
    if len(waiting) <= count:
        return waiting, np.ones(len(ranks))
    return waiting[:count], np.minimum(1.0, ranks[waiting[count]] * wants)


def numbers_of(ids: Sequence[str]) -> Values:
    """Hashes each id to a number in (0, 1], the same on every machine."""
    return np.asarray([number(each) for each in ids], np.float64)


def number(id_: str) -> float:
    """Hashes one id, see :func:`numbers_of`."""
    digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"label drawing").digest()
    return (int.from_bytes(digest, "big") + 1) / 2.0**64
