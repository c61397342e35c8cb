"""Keeps the corrected pass rates of a running collector up to date, as gauges. Where there are too few labels there is
no value, only how many labels there are."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store
from pandaeval_collector.trials.labels.rates import AgentRate, pass_rates

_log = logging.getLogger(__name__)
_NAME = "pandaeval.pass_rate"


class PassRates:
    """The rates of one store, calculated on a thread every ``interval`` seconds while there are labels. On one event
    loop."""

    def __init__(self, store: Store, telemetry: Telemetry, interval: float) -> None:
        self._store, self._interval = store, interval
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._told: set[tuple[str, str]] = set()
        self._bell, self._stopping = Bell(), False
        self._task: asyncio.Task[None] | None = None
        telemetry.family(self._values)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pandaeval-pass-rates")

    async def stop(self) -> None:
        """Returns when a calculation that is under way has ended."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await self._task

    def _values(self) -> Mapping[tuple[str, Attributes], float]:
        return self._shown

    async def _run(self) -> None:
        while not self._stopping:
            try:
                self._show(await asyncio.to_thread(self._calculate))
            except sqlite3.Error as error:
                _log.error("the corrected pass rates could not be calculated (%s); trying again", error)
            await self._bell.sleep(self._interval)

    def _calculate(self) -> list[AgentRate]:
        with self._store.snapshot():
            return pass_rates(self._store.people.reader()) if self._store.people.has_labels() else []

    def _show(self, rates: list[AgentRate]) -> None:
        self._shown = {key: value for each in rates for key, value in _gauges(each).items()}
        for each in rates:
            about = each.metric, each.agent
            if each.rate is None and about not in self._told:
                self._told.add(about)
                _log.info("%s of agent %r, %d drawn labels: a pass rate %s (docs/trust.md)", *about, each.n, each.why)


def _gauges(each: AgentRate) -> dict[tuple[str, Attributes], float]:
    level, _, name = each.metric.partition(".")
    about = (("gen_ai.evaluation.name", name), ("pandaeval.level", level), ("gen_ai.agent.name", each.agent))
    attributes = tuple(pair for pair in about if pair[1])
    found = {(f"{_NAME}.labels", attributes): float(each.n)}
    if each.rate is not None:
        values = {"": each.rate.value, ".low": each.rate.low, ".high": each.rate.high}
        found |= {(f"{_NAME}{end}", attributes): value for end, value in values.items()}
    return found
