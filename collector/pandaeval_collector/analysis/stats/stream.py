"""A gate for a stream of results that may be looked at after every one of them.

A test that is made for one look raises a false alarm sooner or later if it is looked at again and again. This one bets
against the claim that results pass at the allowed rate: a fair game if the claim holds, at which nobody gets rich. The
wealth is an e-process (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"; Ramdas
et al. 2023, "Game-theoretic statistics and safe anytime-valid inference"): as long as every result, whatever went
before, passes at least as often as allowed, the chance that it ever reaches 1/level is at most the level (Ville 1939).

How bad things are, and since when, is not known beforehand, so the money is spread: over stakes from cautious to bold,
and over moments to begin at, of which moment j gets the share 1/(j (j + 1)). Thus a good past does not hide a bad
present; it only makes the alarm later, by twice the logarithm of its length.

Results may depend on the earlier ones in any way. That each passes with at least the allowed rate given those before it
is what is tested; an agent that is good on average, and bad for a while, is reported for that while.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BOLDNESS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8)
"""Stakes, as shares of the largest one that can never cost more than there is. The best one for a stream that passes at
a rate q instead of r is (r - q)/r (Kelly 1956)."""
_MOST = 100.0
"""Wealth beyond so many times the alarm is given away, so that the gate is back soon after things went well again."""
Values = NDArray[np.float64]


class StreamGate:
    """Watches one stream. ``rate``: the least share of results that has to pass; ``level``: the largest chance of ever
    raising an alarm while the rate is kept; both between 0 and 1 (else ``ValueError``). One thread."""

    def __init__(self, rate: float, level: float = 0.05) -> None:
        if not (0.0 < rate < 1.0 and 0.0 < level < 1.0):
            raise ValueError(f"rate and level lie between 0 and 1, not {rate!r} and {level!r}")
        self.rate, self.level = rate, level
        self.n = 0
        self.alarmed_at: int | None = None
        """After how many results the first alarm came."""
        self._begun = nothing_begun()

    def add(self, value: float) -> bool:
        """Adds one result: 1 passed, 0 failed, or a score between (then its mean is what must reach the rate). Returns
        whether the alarm is on. Raises ``ValueError`` outside 0..1."""
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a result lies in 0..1, not {value!r}")
        self.n += 1
        self._begun = bet(self._begun, self.n, np.float64(value), self.rate, self.level)
        if self.alarmed_at is None and self.is_on:
            self.alarmed_at = self.n
        return self.is_on

    @property
    def e_value(self) -> float:
        """The wealth, which began with 1: 20 is as rare under the claim as a p-value of 0.05, at any time."""
        return float(wealth(self._begun, self.n))

    @property
    def is_on(self) -> bool:
        """Whether the wealth is at 1/level or above now."""
        return self.e_value >= 1.0 / self.level

    def state(self) -> dict[str, object]:
        """Returns the gate's state, JSON-ready, for :meth:`restored`."""
        return {"n": self.n, "alarmed_at": self.alarmed_at, "begun": self._begun.tolist()}

    @classmethod
    def restored(cls, rate: float, level: float, state: dict[str, object]) -> StreamGate:
        """Makes the gate of a state. Raises ``ValueError``, ``TypeError`` or ``KeyError`` for a bad state."""
        made = cls(rate, level)
        made.n = int(state["n"])  # type: ignore[call-overload]
        at = state["alarmed_at"]
        made.alarmed_at = None if at is None else int(at)  # type: ignore[call-overload]
        begun = np.asarray(state["begun"], dtype=np.float64)
        if begun.shape != made._begun.shape or not np.isfinite(begun).all():
            raise ValueError("not the state of a gate")
        made._begun = begun
        return made


def nothing_begun(streams: int | None = None) -> Values:
    """Returns the wealth of stakes before the first result: of one stream, or a row for each of many."""
    return np.zeros(len(BOLDNESS)) if streams is None else np.zeros((streams, len(BOLDNESS)))


def bet(begun: Values, n: int, values: Values | np.float64, rate: float, level: float) -> Values:
    """Returns the wealth of each stake after the ``n``-th result (from 1 on) of one stream or of many."""
    stakes = np.asarray(BOLDNESS) / (1.0 - rate)
    won = 1.0 + stakes * (rate - np.asarray(values)[..., None])
    grown = (begun + 1.0 / (n * (n + 1))) * won
    most = _MOST / level
    total = grown.mean(axis=-1, keepdims=True)
    kept: Values = grown * np.minimum(1.0, most / np.maximum(total, most))
    return kept


def wealth(begun: Values, n: int) -> Values | np.float64:
    """Sums the stakes after ``n`` results: those that have begun, and those that wait for a later beginning."""
    total: Values | np.float64 = begun.mean(axis=-1) + 1.0 / (n + 1)
    return total
