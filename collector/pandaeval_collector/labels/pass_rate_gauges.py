"""Keeps the corrected pass rates of a running collector up to date, as gauges.

With too few labels there is no rate, only the number of labels.
"""

from __future__ import annotations

import asyncio
import logging

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.labels.rates import AgentRate, pass_rates
from pandaeval_collector.store import StoreAccess

_log = logging.getLogger(__name__)
_NAME = "pandaeval.pass_rate"


class PassRates:
    """Calculates a store's rates on a thread while there are labels. On one event loop."""

    def __init__(self, store: StoreAccess, telemetry: Telemetry) -> None:
        self._store = store
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._told: set[tuple[str, str]] = set()
        telemetry.family(lambda: self._shown)

    async def update(self) -> None:
        """Calculates the rates anew."""

        def calculate() -> list[AgentRate]:
            with self._store.reads.snapshot():
                return pass_rates(self._store.reads.connection()) if self._store.people.has_labels() else []

        rates = await asyncio.to_thread(calculate)
        shown: dict[tuple[str, Attributes], float] = {}
        for each in rates:
            level, _, name = each.metric.partition(".")
            named = (("gen_ai.evaluation.name", name), ("pandaeval.level", level), ("gen_ai.agent.name", each.agent))
            attributes = tuple(pair for pair in named if pair[1])
            shown[f"{_NAME}.labels", attributes] = float(each.n)
            if each.rate is not None:
                values = {"": each.rate.value, ".low": each.rate.low, ".high": each.rate.high}
                shown |= {(f"{_NAME}{end}", attributes): value for end, value in values.items()}
        self._shown = shown
        for each in rates:
            about = each.metric, each.agent
            if each.rate is None and about not in self._told:
                self._told.add(about)
                _log.info(
                    "%s of agent %r, %d drawn labels: a pass rate %s (docs/guides/labels.md)", *about, each.n, each.why
                )
