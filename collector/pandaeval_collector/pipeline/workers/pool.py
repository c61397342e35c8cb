"""The worker processes of a collector: hands each batch to the process with the least to do, and a batch over which a
process died to another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Ready
from pandaeval_collector.pipeline.workers.process import WorkerEndedError, WorkerSlot
from pandaeval_collector.pipeline.workers.wire import WorkerSetup, pack_due, raise_error, told_beside, unpack_answer
from pandaeval_collector.scoring.evaluator.cpu import CPU
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.base.component_errors import ERRORS

_log = logging.getLogger(__name__)

_PATIENCE_S, _PER_BYTE_S = 60.0, 2e-6
"""After how long at a request a process is taken for hanging: fifty times what a request takes on a free core."""
_ALONE = 3
"""Most processes that may end over a trace which they were given alone."""


class Workers:
    """Implements :class:`pandaeval_collector.pipeline.line.understanding.Understands`. On one event loop."""

    def __init__(self, number: int, setup: WorkerSetup, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        self._changed = asyncio.Event()
        self._stopping = False
        self._told = False
        packed = setup.pack()
        self._workers = [WorkerSlot(packed, environ, telemetry, self._changed.set) for _ in range(number)]
        self.room = 2 * number + 1
        """Each process has a batch at hand and another in its pipe; one is being filed."""

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def start(self) -> None:
        """Starts the processes and returns when all can be asked. Raises :class:`WorkerStartError`; :meth:`close` has
        to be called all the same."""
        started = await asyncio.gather(*(worker.start() for worker in self._workers), return_exceptions=True)
        for error in started:
            if error is not None:
                raise error

    async def of(self, due: Sequence[DueTrace]) -> Ready:
        """See :class:`Understands`. When a process ends, the batches that waited in it are asked again. The batch that
        it ended over is not, unless it is a single trace over which the process did not hang."""
        request, tries = pack_due(due), _ALONE if len(due) == 1 else 1
        patience = _PATIENCE_S + sum(each.size for each in due) * _PER_BYTE_S
        while True:
            worker = await self._free()
            try:
                answer = await worker.ask(request, patience)
            except WorkerEndedError as error:
                if not error.over_it:
                    continue
                self._tell(due)
                tries = 0 if error.hung else tries - 1
                if not tries:
                    raise NotUnderstoodError("worker_hung" if error.hung else "worker_ended", str(error)) from error
                continue
            beside = told_beside(answer)
            ERRORS.add(beside.raised)
            CPU.add(beside.cpu)
            raise_error(answer)
            return partial(unpack_answer, answer)

    def stop(self) -> None:
        """See :class:`Understands`."""
        self._stopping = True
        self._changed.set()

    async def close(self) -> None:
        """Ends all processes."""
        self.stop()
        await asyncio.gather(*(worker.close() for worker in self._workers))

    async def _free(self) -> WorkerSlot:
        """Waits for the process with the fewest unanswered requests."""
        while not (ready := [worker for worker in self._workers if worker.is_ready]):
            if self._stopping:
                raise NotUnderstoodError("stopping", "no process of the line is left to understand traces")
            self._changed.clear()
            await self._changed.wait()
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
