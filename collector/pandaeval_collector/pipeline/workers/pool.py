"""The worker processes of a collector: hands each batch to the process with the least to do, and a batch over which a
process died to another."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pandaeval_collector.base.runtime.calls import Calls, ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Ready
from pandaeval_collector.scoring.evaluator import EvaluatorSettings
from pandaeval_collector.scoring.evaluator.cpu import CPU
from pandaeval_otel.assembly import DueTrace

_log = logging.getLogger(__name__)

_WHAT, _MODULE = "a process of the line (line.workers)", "pandaeval_collector.pipeline.workers.main"
_PATIENCE_S, _PER_BYTE_S = 60.0, 2e-6
"""After how long at a request a process is taken for hanging: fifty times what a request takes on a free core."""
_ALONE = 3
"""Most processes that may end over a trace which they were given alone."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker is told at its start: the store's directory, how to embed, what to score."""

    store: Path
    embedding: str
    settings: EvaluatorSettings


class Workers:
    """Implements :class:`pandaeval_collector.pipeline.line.understanding.Understands`. On one event loop."""

    def __init__(self, number: int, setup: WorkerSetup, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        self._stopping = False
        self._told = False
        count, handlers = partial(telemetry.add, "pandaeval.workers"), {"spent": CPU.add}
        self._workers = [
            Calls(_WHAT, _MODULE, setup, environ, count=count, handlers=handlers, in_turn=True, keep=True)
            for _ in range(number)
        ]
        self.room = 2 * number + 1
        """Each process has a batch at hand and another in its pipe; one is being filed."""

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def start(self) -> None:
        """Starts the processes and returns when all can be asked. Raises ``ChildStartError``; :meth:`close` has to
        be called all the same."""
        started = await asyncio.gather(*(worker.start() for worker in self._workers), return_exceptions=True)
        for error in started:
            if error is not None:
                raise error

    async def of(self, due: Sequence[DueTrace]) -> Ready:
        """See :class:`Understands`. When a process ends, the batches that waited in it are asked again. The batch that
        it ended over is not, unless it is a single trace over which the process did not hang."""
        request, tries = [replace(each, known=frozenset()) for each in due], _ALONE if len(due) == 1 else 1
        patience = _PATIENCE_S + sum(each.size for each in due) * _PER_BYTE_S
        while True:
            worker = await self._free()
            try:
                understood = await worker.ask("understand", request, patience=patience)
            except ChildEndedError as error:
                if not error.over_it:
                    continue
                self._tell(due)
                tries = 0 if error.hung else tries - 1
                if not tries:
                    kind, how = ("worker_hung", "hung") if error.hung else ("worker_ended", "ended")
                    which = f"process {error.pid} of the line ({error.why.replace('_', ' ')})"
                    raise NotUnderstoodError(kind, f"{which} {how} over these traces") from error
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                kind = type(error).__name__
                raise NotUnderstoodError(kind, f"{kind}: {error}") from error
            else:
                return lambda: understood

    def stop(self) -> None:
        """See :class:`Understands`."""
        self._stopping = True
        for worker in self._workers:
            worker.stop()

    async def close(self) -> None:
        """Ends all processes."""
        self.stop()
        await asyncio.gather(*(worker.close() for worker in self._workers))

    async def _free(self) -> Calls:
        """Waits for the process with the fewest unanswered requests."""
        while not (ready := [worker for worker in self._workers if worker.pid is not None]):
            if self._stopping:
                raise NotUnderstoodError("stopping", "no process of the line is left to understand traces")
            starts = [asyncio.ensure_future(worker.start()) for worker in self._workers]
            try:
                await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for start in starts:
                    start.cancel()
                await asyncio.gather(*starts, return_exceptions=True)
        return min(ready, key=lambda worker: worker.busy)

    def _tell(self, due: Sequence[DueTrace]) -> None:
        _log.error("a process of the line ended over %d traces; they are decided again by another", len(due))
        if not self._told:
            self._told = True
            _log.error(
                "if the machine is short of memory, lower line.workers or give it more; a trace that ends %d processes "
                "alone is given up, and counted as failed",
                _ALONE,
            )
