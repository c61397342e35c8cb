"""Executes the runs of a store, one after the other, each in a process of its own beside the live line."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.process import BatchFailedError, LiveJudge, RunProcess, RunSetup, Scored, judge_of_run
from pandaeval_collector.runs.settings import judge as judge_of
from pandaeval_collector.runs.settings import scoring
from pandaeval_collector.runs.spec import RunSpec, choose, config_of
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.runs import RunBatch, RunRow

_log = logging.getLogger(__name__)

FOLDER = "run-work"
BATCH, BATCH_UNASKED, BATCH_IN_BUDGET = 64, 256, 8
"""So many traces are scored and committed together; more where no judge is asked, few where a budget is to be kept."""
_TOLD_S = 1.0
Emit = Callable[[bytes, RunBatch], Awaitable[Any]]
_ENDED = "worker_ended"


class Engine:
    """Executes the runs of a store, on one event loop."""

    def __init__(
        self,
        store: StoreAccess,
        config: Config,
        environ: Mapping[str, str],
        live: LiveJudge | None,
        telemetry: Telemetry,
        emit: Emit | None = None,
    ) -> None:
        """``emit``: files a batch and exports its results, which are packed; without it, none is exported."""
        self._store, self._config, self._environ, self._live = store, config, environ, live
        self._telemetry, self._emit = telemetry, emit
        self._executing: Every | None = None
        self._current: tuple[str, RunProcess] | None = None

    async def start(self) -> None:
        """Starts a task that executes queued runs, first those that an earlier process left unfinished."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        self._executing = Every(math.inf, self._execute_next, "pandaeval-runs", grace=0.0)

    async def finish(self, run: RunRow) -> None:
        """Executes this run and no other, on a store that no collector works on. A cancelled call leaves the run as a
        crash would: the next process continues it."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            if (attempt := await asyncio.wrap_future(self._store.runs.begin(run.no))) is not None:
                await self._execute(replace(run, started_at=attempt))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)  # on the loop: it may be ending

    async def stop(self) -> None:
        """Stops the task and the run under way; the next start repeats the batch that was being scored."""
        if self._executing is not None:
            await self._executing.stop()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """The folder in which the processes of runs write."""
        return self._store.path / FOLDER

    def wake(self) -> None:
        """Tells the engine that a run was queued."""
        if self._executing is not None:
            self._executing.ring()

    def cancelled(self, run_id: str) -> None:
        """Tells the engine that a run was cancelled: ends its process if it is under way."""
        if self._current is not None and self._current[0] == run_id:
            self._current[1].end()

    async def _execute_next(self) -> float:
        run = await asyncio.to_thread(self._store.runs.next)
        if run is None:
            return math.inf
        attempt = await asyncio.wrap_future(self._store.runs.begin(run.no))
        if attempt is None:
            return 0.0
        try:
            await self._execute(replace(run, started_at=attempt))
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - a run must harm neither the next one nor the line
            _log.exception("a run was given up")
            self._telemetry.add("pandaeval.runs", "given_up")
            await asyncio.wrap_future(self._store.runs.end(run.no, attempt, f"{type(error).__name__}: {error}"))
        return 0.0

    async def _execute(self, run: RunRow) -> None:
        """Executes a run that began; ``started_at`` tells this attempt at it from later ones."""
        runs, spec = self._store.runs, RunSpec.from_json(run.body)
        after = run.planned  # chosen and stored page by page, so that a restart continues
        while after < run.upto and await self._running(run) is not None:
            items, after = await asyncio.to_thread(choose, self._store, spec, after, run.upto)
            await asyncio.wrap_future(runs.plan(run.no, items, after, spec.of_sessions))
        try:
            error = await self._score(run, spec)
        except (UserError, CallFailedError) as failure:
            error = str(failure)
        await asyncio.wrap_future(runs.end(run.no, run.started_at, error))
        self._telemetry.add("pandaeval.runs", "failed" if error else "ended")

    async def _score(self, run: RunRow, spec: RunSpec) -> str:
        """Scores the pending traces of the run; returns why it had to stop early, else ``""``."""
        config = config_of(self._config, spec)
        async with judge_of_run(self._store, self._environ, self._live, judge_of(config)) as judge:
            at_once = max(1, config.judge.concurrency // 2)
            if judge is not None:
                await judge.prices()  # what keeps it from starting is told now
            setup = run_setup(self._store, config, run.id, spec, self.folder)
            alone, most = 0, BATCH_UNASKED if judge is None else BATCH if spec.budget_usd is None else BATCH_IN_BUDGET
            process = RunProcess(setup, self._environ, judge, self._store, at_once)
            self._current = run.id, process
            try:
                while (now := await self._running(run)) is not None:
                    batch = await asyncio.to_thread(self._store.runs.pending, run.no, 1 if alone else most)
                    if not batch:
                        break
                    if spec.budget_usd is not None and now.cost_usd >= spec.budget_usd:
                        return f"its budget of ${spec.budget_usd:g} is used up; a new run pays for no answer again"
                    alone = max(0, alone - len(batch))
                    try:
                        scored = await self._scored(run, process, batch)
                    except ChildStartError:
                        if await self._running(run) is not None:
                            raise
                        break
                    except BatchFailedError as failure:
                        _log.error("%d traces of run %s could not be scored: %s", len(batch), run.id, failure)
                        scored = Scored([], [])
                        if await self._running(run) is not None:
                            self._telemetry.add("pandaeval.runs", "process_ended")
                            if len({(session, 0) if session else (0, no) for no, session in batch}) == 1:
                                scored.items = [(no, _ENDED) for no, _ in batch]
                            else:  # one of them may be the cause
                                alone = len(batch)
                    await self._file(run, process, scored)
            finally:
                self._current = None
                await process.close()
                await self._file(run, process)
        return ""

    async def _running(self, run: RunRow) -> RunRow | None:
        """Returns the run as it stands now; ``None`` once this attempt at it is over."""
        now = await asyncio.to_thread(self._store.runs.find, run.id)
        return now if now is not None and (now.state, now.started_at) == ("running", run.started_at) else None

    async def _scored(self, run: RunRow, process: RunProcess, batch: Sequence[tuple[int, int]]) -> Scored:
        """Has the process score a batch. Files what calls cost while the batch is under way: a run that is broken off
        paid for them, too."""
        under_way = asyncio.ensure_future(process.score(batch))
        try:
            while not (await asyncio.wait({under_way}, timeout=_TOLD_S))[0]:
                await self._file(run, process)
        finally:
            under_way.cancel()
        return under_way.result()

    async def _file(self, run: RunRow, process: RunProcess, scored: Scored | None = None) -> None:
        """Files what was scored, and what calls have cost meanwhile."""
        scored, spent = scored or Scored([], []), process.spent()
        if not (scored.items or scored.results or spent[0]):
            return
        batch = RunBatch(run.no, scored.items, scored.results, *spent)
        if scored.sent and self._emit is not None:
            await self._emit(scored.sent, batch)
        else:
            await asyncio.wrap_future(self._store.runs.add(batch))


def run_setup(
    store: StoreAccess, config: Config, run_id: str, spec: RunSpec, folder: Path, counting: bool = False
) -> RunSetup:
    """Makes the setup of the process of a run, and the folder that it writes to."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    return RunSetup(
        store.path,
        folder / run_id,
        config.embedding.model,
        scoring(config),
        judge_of(config),
        run_id,
        sessions=spec.of_sessions,
        emit=spec.emit,
        counting=counting,
    )
