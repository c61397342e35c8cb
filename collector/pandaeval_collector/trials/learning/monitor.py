"""Learns in a running collector, as soon as an agent has labels enough, and says when a model has become old.

A model that is there is never replaced: :class:`Learning` proposes, and ``pandaeval learn`` does it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from pandaeval_collector.analysis.stats.problem_model import LEAST_LABELS
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store, people
from pandaeval_collector.trials.learning.labelled_runs import LabelledRuns, StoredSessions, labelled_runs, of_people
from pandaeval_collector.trials.learning.models import keep, kept, learned

_log = logging.getLogger(__name__)

GROWN = 1.5
"""A model that was learned from so many times fewer labels than there are now is old."""
DRIFTED = 0.15
"""So is one that states another share of problems among the labelled runs than there is, by more than this."""
_NAME = "pandaeval.learned"


class Learning:
    """The models of one store, looked after every ``interval`` seconds while there are labels. On one event loop."""

    def __init__(self, store: Store, folder: Path, telemetry: Telemetry, interval: float) -> None:
        self._store, self._folder, self._interval = store, folder, interval
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._bell, self._stopping = Bell(), False
        self._task: asyncio.Task[None] | None = None
        telemetry.family(lambda: self._shown)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pandaeval-learning")

    async def stop(self) -> None:
        """Returns when a fit that is under way has ended."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._stopping:
            try:
                self._shown = await asyncio.to_thread(self._look)
            except (sqlite3.Error, UserError, ValueError) as error:
                _log.error("nothing could be learned from labels (%s); trying again", error)
            await self._bell.sleep(self._interval)

    def _look(self) -> dict[tuple[str, Attributes], float]:
        if not self._store.people.has_labels():
            return {}
        with self._store.snapshot():
            connection = self._store.people.reader()
            found = labelled_runs(StoredSessions(connection), of_people(people.labels(connection)))
        return {key: value for runs in found for key, value in self._gauges(runs).items()}

    def _gauges(self, runs: LabelledRuns) -> Mapping[tuple[str, Attributes], float]:
        attributes = (("gen_ai.agent.name", runs.agent), ("pandaeval.level", runs.level))
        values = {"labels": float(len(runs.rows)), "proposed": float(self._look_after(runs))}
        model = kept(self._folder, runs.level, runs.agent)
        if model is not None and model.evidence.same_length is not None:
            values["auroc"] = model.evidence.same_length.value
        return {(f"{_NAME}.{name}", attributes): value for name, value in values.items()}

    def _look_after(self, runs: LabelledRuns) -> bool:
        """Learns where nothing is learned yet. Whether another model is proposed."""
        model, key = kept(self._folder, runs.level, runs.agent), (runs.level, runs.agent)
        if model is not None:
            stated = sum(map(model.model.probability, runs.rows)) / len(runs.rows)
            drift = abs(stated - sum(runs.bad) / len(runs.bad))
            return len(runs.rows) >= GROWN * model.evidence.labels or drift > DRIFTED
        if len(runs.rows) >= LEAST_LABELS and len(runs.rows) != self._seen.get(key):
            self._seen[key] = len(runs.rows)
            made, evidence = learned(runs)
            if made is None:
                _log.info("agent %r: no problem score was learned: %s", runs.agent, evidence.refusal)
            else:
                path = keep(self._folder, made)
                _log.info(
                    "agent %r: a problem score was learned from %d labels (AUROC among equally long runs %s): %s",
                    *(runs.agent, evidence.labels, evidence.same_length, path),
                )
        return False
