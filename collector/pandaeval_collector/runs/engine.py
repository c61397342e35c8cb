"""Executes queued runs in order, each in a process of the lab."""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.isolated import Isolated
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.runtime.peer import Handlers
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.judge.rulings import Ruling
from pandaeval_collector.runs.front import trace_timeout
from pandaeval_collector.runs.rulings_file import read_rulings, rulings_path, write_rulings
from pandaeval_collector.runs.spec import Chosen, RunSpec, choose, config_of, judged
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.runs import RunBatch, RunRow

_log = logging.getLogger(__name__)

FOLDER = "run-work"
BATCH, BATCH_UNASKED, BATCH_IN_BUDGET = 64, 256, 8
"""Traces scored and committed together: with a judge, without a judge, and with a budget."""
START_SECONDS = 60.0
_ENDED = "worker_ended"
_REFUSED = (UserError, CallFailedError)
"""Errors that are no fault of a trace."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The setup of a run's process.

    ``store``: data directory. ``folder``: writable. ``live_models``: of the live judge. ``emit``: export results.
    """

    store: Path
    clock: StoreClock
    folder: Path
    config: Config
    live_models: frozenset[str]
    run: int
    run_id: str
    sessions: bool
    emit: bool


@dataclass(frozen=True, slots=True)
class RunSurroundings:
    """Shared data of a collector's runs.

    ``answers``: handlers for run processes: ``write``, ``emitted``, and with ``live_models``, ``complete`` and
    ``prices``.
    """

    store: StoreAccess
    config: Config
    environ: Mapping[str, str]
    answers: Handlers
    live_models: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        return self.store.path / FOLDER

    @asynccontextmanager
    async def process(self, spec: RunSpec, run: int, run_id: str) -> AsyncIterator[Calls]:
        """Make and end a run's process. Raises ``UserError`` without the lab."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        config, rulings = config_of(self.config, spec), self.folder / f"{run_id}.yaml"
        if spec.ruling is not None:
            tried = Ruling.model_validate(spec.ruling)
            write_rulings([*read_rulings(rulings_path(self.config)), tried], rulings)
            config = config.model_copy(update={"judge": config.judge.model_copy(update={"rulings": str(rulings)})})
        setup = RunSetup(
            self.store.path,
            self.store.clock,
            self.folder / run_id,
            config,
            self.live_models,
            run,
            run_id,
            sessions=spec.of_sessions,
            emit=spec.emit,
        )
        process = Calls("the process of a run", _module(), setup, self.environ, handlers=self.answers)
        try:
            yield process
        finally:
            await process.close()
            await asyncio.to_thread(shutil.rmtree, setup.folder, ignore_errors=True)
            rulings.unlink(missing_ok=True)


class Engine:
    """Executes a store's runs, on one event loop."""

    def __init__(self, around: RunSurroundings, telemetry: Telemetry) -> None:
        self._around, self._store, self._telemetry = around, around.store, telemetry
        self._executing: Every | None = None
        self._current: tuple[str, Calls] | None = None

    async def start(self) -> None:
        await self._clear()
        self._executing = Every(math.inf, self._execute_next, "pandaeval-runs", grace=0.0)

    async def stop(self) -> None:
        """Stop the task and the run; the next start repeats its batch."""
        if self._executing is not None:
            await self._executing.stop()
        await self._clear()

    def wake(self) -> None:
        if self._executing is not None:
            self._executing.ring()

    def cancelled(self, run_id: str) -> None:
        """End the process of a cancelled run."""
        if self._current is not None and self._current[0] == run_id:
            self._current[1].stop()
            self._current[1].kill()

    async def _clear(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._around.folder, ignore_errors=True)

    async def _execute_next(self) -> float:
        run = await asyncio.to_thread(self._store.runs.next)
        if run is None:
            return math.inf
        if not await asyncio.wrap_future(self._store.runs.begin(run.no)):
            return 0.0
        outcome, error = "ended", ""
        try:
            await self._execute(run)
        except _REFUSED as failure:
            outcome, error = "failed", str(failure)
        except sqlite3.Error:
            raise
        except Exception as failure:  # noqa: BLE001 - an error must not affect other runs or scoring
            _log.exception("a run was given up")
            outcome, error = "given_up", f"{type(failure).__name__}: {failure}"
        await asyncio.wrap_future(self._store.runs.end(run.no, error))
        self._telemetry.add("pandaeval.runs", outcome)
        return 0.0

    async def _execute(self, run: RunRow) -> None:
        spec = RunSpec.from_json(run.body)
        await self._plan(run, spec)
        async with self._around.process(spec, run.no, run.id) as process:
            self._current = run.id, process
            try:
                async for batch in self._batches(run, spec):
                    await self._score(run, spec, process, batch)
            except ChildStartError:
                if await self._now(run) is not None:
                    raise
            finally:
                self._current = None

    async def _plan(self, run: RunRow, spec: RunSpec) -> None:
        after = run.planned
        while after < run.upto and await self._now(run) is not None:
            items, after = await asyncio.to_thread(choose, self._store, spec, after, run.upto)
            await asyncio.wrap_future(self._store.runs.plan(run.no, items, after, spec.of_sessions))

    async def _batches(self, run: RunRow, spec: RunSpec) -> AsyncIterator[Sequence[Chosen]]:
        """Yield pending traces. Raises ``UserError`` if the budget is spent."""
        most = _batch_size(self._around.config, spec)
        while (now := await self._now(run)) is not None:
            batch = await asyncio.to_thread(self._store.runs.pending, run.no, most)
            if not batch:
                return
            if spec.budget_usd is not None and now.cost_usd >= spec.budget_usd:
                budget = f"its budget of ${spec.budget_usd:g} is used up"
                raise UserError(f"{budget}; a new run pays for no answer again")
            yield batch

    async def _score(self, run: RunRow, spec: RunSpec, process: Calls, batch: Sequence[Chosen]) -> None:
        """Score traces, session by session if that fails. A session that fails alone is recorded."""
        parts = Isolated(_sessions(batch))
        for part in parts:
            items = [item for session in part for item in session]
            try:
                await process.ask("score", items, patience=self._patience(spec, len(items)))
            except _REFUSED:
                raise
            except Exception as failure:  # noqa: BLE001 - an error affects only this trace
                _log.error("%d traces of run %s could not be scored: %s", len(items), run.id, failure)
                if await self._now(run) is None:
                    return
                self._telemetry.add("pandaeval.runs", "process_ended")
                if not parts.split():
                    failed = RunBatch(run.no, [(no, _ENDED) for no, _ in items], [])
                    await asyncio.wrap_future(self._store.runs.add(failed))

    def _patience(self, spec: RunSpec, traces: int) -> float:
        if judged(self._around.config, spec):
            return math.inf
        return START_SECONDS + traces * 2 * trace_timeout(self._around.config)

    async def _now(self, run: RunRow) -> RunRow | None:
        now = await asyncio.to_thread(self._store.runs.find, run.id)
        return now if now is not None and now.state == "running" else None


def _sessions(batch: Sequence[Chosen]) -> list[list[Chosen]]:
    sessions: dict[tuple[int, int], list[Chosen]] = {}
    for no, session in batch:
        sessions.setdefault((session, 0 if session else no), []).append((no, session))
    return [*sessions.values()]


def _batch_size(config: Config, spec: RunSpec) -> int:
    if not judged(config, spec):
        return BATCH_UNASKED
    return BATCH if spec.budget_usd is None else BATCH_IN_BUDGET


def _module() -> str:
    for point in entry_points(group="pandaeval.commands", name="lab"):
        return f"{point.module.partition('.')[0]}.replay.run_process"
    raise UserError("evaluation runs need pandaeval_lab, which is part of pandaeval-collector: install it whole")
