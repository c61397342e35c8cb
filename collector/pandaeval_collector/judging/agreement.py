"""Measures how far judges can be trusted: how often they agree with themselves and with known answers. Kept in the
store, shown as gauges.

Never a score of anybody's agent: nothing here enters results' values, sessions or series of scores.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass

from pandaeval_collector.store import Store
from pandaeval_collector.telemetry import Telemetry

_KEY = "judge.agreement"
_KEEP = 200
"""Comparisons that the mean is over, for each check, metric and model: old ones must not hide a change."""
_INSTRUMENT = "pandaeval.judge.agreement"

Series = tuple[str, str, str]
"""Check (``retest`` or ``canary``), metric, model."""


@dataclass(frozen=True, slots=True)
class AgreementShare:
    """The mean of the newest ``n`` comparisons, 0..1: 1 is perfect agreement."""

    value: float
    n: int


class Agreement:
    """All comparisons of one store. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._values: dict[Series, list[float]] = {}
        for name, values in json.loads(store.get(_KEY) or "{}").items():
            check, metric, model = name.split("\t")
            self._values[check, metric, model] = values
            self._show((check, metric, model))

    async def add(self, check: str, metric: str, model: str, value: float) -> None:
        """One comparison, 0..1; in the store when this returns."""
        await self._keep((check, metric, model), [*self._values.get((check, metric, model), ()), value])

    async def put(self, check: str, metric: str, model: str, values: list[float]) -> None:
        """These comparisons instead of all before."""
        await self._keep((check, metric, model), values)

    def of(self, check: str, metric: str, model: str) -> AgreementShare | None:
        """``None`` as long as nothing was compared."""
        values = self._values.get((check, metric, model))
        return AgreementShare(math.fsum(values) / len(values), len(values)) if values else None

    async def _keep(self, series: Series, values: list[float]) -> None:
        is_new = series not in self._values
        self._values[series] = values[-_KEEP:]
        if is_new:
            self._show(series)
        body = json.dumps({"\t".join(each): kept for each, kept in self._values.items()})
        await asyncio.wrap_future(self._store.put(_KEY, body))

    def _show(self, series: Series) -> None:
        check, metric, model = series

        def read() -> float:
            shown = self.of(*series)
            return shown.value if shown is not None else math.nan

        self._telemetry.gauge(_INSTRUMENT, read, check=check, metric=metric, model=model)
