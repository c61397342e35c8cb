"""Keeps what two verdicts on the same run said, a judge's own second one or another judge's, and shows how far they
agree. Kept in the store, shown as gauges.

Never a score of anybody's agent: nothing here enters results' values, sessions or series of scores.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.stats import paired
from pandaeval_collector.analysis.stats.paired import Pair, PairedEstimate
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)

_KEY = "judge.compared"
_KEEP = 200
"""Comparisons that figures are over, for each check, metric and model: old ones must not hide a change."""
ENOUGH = 20
"""With fewer comparisons, no statement is made on whether a judge discriminates."""
_LEAST_SPREAD, _LEAST_DISCRIMINATION = 0.02, 0.2
"""A judge whose verdicts on different runs are closer than this, or differ by chance for the most part, does not
discriminate."""
ALIKE = "does not discriminate"

Series = tuple[str, str, str]
"""Check (``retest`` or ``second``), metric, model."""


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """What the newest ``n`` comparisons show. ``agreement``: 1 minus the mean distance; ``flips``: pairs on two sides
    of the threshold; ``noise``: standard deviation of verdicts on one run, ``spread``: of first verdicts on different
    runs, ``discrimination``: the share of variance that is of the runs (both NaN for a single comparison)."""

    n: int
    agreement: float
    flips: int
    noise: float
    spread: float
    discrimination: float
    kappa: PairedEstimate | None
    difference: PairedEstimate | None

    @property
    def alike(self) -> bool:
        """Whether the judge says much the same of all runs, so that its agreement with itself is worth nothing. That
        may be right of agents that are all good: only runs that are known to be bad can tell."""
        if self.n < ENOUGH:
            return False
        return self.spread < _LEAST_SPREAD or self.discrimination < _LEAST_DISCRIMINATION

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures for the metadata of a result."""
        shown: dict[str, Any] = {"value": self.agreement, "n": self.n, "flips": self.flips, "noise": self.noise}
        if self.n > 1:
            shown["spread"] = self.spread
        for name, each in (("kappa", self.kappa), ("difference", self.difference)):
            if each is not None:
                shown[name] = {"value": each.value, "ci_low": each.low, "ci_high": each.high}
        return {**shown, "label": ALIKE} if self.alike else shown


class Agreement:
    """All comparisons of one store. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._pairs: dict[Series, list[Pair]] = {}
        self._thresholds: dict[Series, float] = {}
        self._figures: dict[Series, VerdictAgreement] = {}
        self._named: set[Series] = set()
        for name, held in json.loads(store.get(_KEY) or "{}").items():
            check, metric, model = name.split("\t")
            self._take((check, metric, model), [(one, other) for one, other in held["pairs"]], held["threshold"])

    async def add(self, check: str, metric: str, model: str, pair: Pair, threshold: float) -> None:
        """One comparison: first and second verdict, and from where on a verdict passes; in the store when this
        returns."""
        series = check, metric, model
        self._take(series, [*self._pairs.get(series, ()), pair][-_KEEP:], threshold)
        self._name(series)
        body = {
            "\t".join(each): {"threshold": self._thresholds[each], "pairs": pairs}
            for each, pairs in self._pairs.items()
        }
        await asyncio.wrap_future(self._store.put(_KEY, json.dumps(body)))

    def of(self, check: str, metric: str, model: str) -> VerdictAgreement | None:
        """``None`` as long as nothing was compared."""
        return self._figures.get((check, metric, model))

    def _take(self, series: Series, pairs: list[Pair], threshold: float) -> None:
        is_new = series not in self._pairs
        self._pairs[series], self._thresholds[series] = pairs, threshold
        self._figures[series] = compared(pairs, threshold)
        if is_new:
            self._show(series)

    def _name(self, series: Series) -> None:
        """Logs, once, that a judge says the same of everything."""
        figures = self._figures[series]
        if figures.alike and series not in self._named:
            self._named.add(series)
            _log.warning(
                "the judge %s %s by %s: its verdicts on %d runs spread by %.3f, those on one and the same by %.3f; "
                "its agreement with itself says nothing (see: pandaeval judge check)",
                series[2],
                ALIKE,
                series[1],
                figures.n,
                figures.spread,
                figures.noise,
            )

    def _show(self, series: Series) -> None:
        check, metric, model = series
        about = {"check": check, "metric": metric, "model": model}

        def gauge(name: str, read: Callable[[VerdictAgreement], float], **more: str) -> None:
            self._telemetry.gauge(f"pandaeval.judge.{name}", lambda: read(self._figures[series]), **about, **more)

        gauge("agreement", lambda found: found.agreement)
        gauge("flips", lambda found: found.flips / found.n)
        gauge("spread", lambda found: found.noise, of="repeats")
        gauge("spread", lambda found: found.spread, of="runs")
        gauge("discrimination", lambda found: found.discrimination)
        for bound, read in _BOUNDS.items():
            gauge("kappa", lambda found, read=read: read(found.kappa), bound=bound)  # type: ignore[misc]
            gauge("difference", lambda found, read=read: read(found.difference), bound=bound)  # type: ignore[misc]


_BOUNDS: Mapping[str, Callable[[PairedEstimate | None], float]] = {
    "estimate": lambda found: math.nan if found is None else found.value,
    "low": lambda found: math.nan if found is None else found.low,
    "high": lambda found: math.nan if found is None else found.high,
}


def compared(pairs: list[Pair], threshold: float) -> VerdictAgreement:
    """The figures of at least one pair."""
    return VerdictAgreement(
        len(pairs),
        paired.agreement(pairs),
        paired.flips(pairs, threshold),
        paired.noise(pairs),
        paired.spread([first for first, _ in pairs]),
        paired.discrimination(pairs),
        paired.kappa(pairs, threshold),
        paired.difference(pairs),
    )
