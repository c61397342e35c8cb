"""Has suspects (:mod:`pandaeval_collector.pipeline.underway`) understood by a process of their own, also without
``line.workers``: if a suspect ends a process, it ends that one and not the collector."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.pipeline.line.understanding import Ready, Understands
from pandaeval_collector.pipeline.workers import Workers
from pandaeval_otel.assembly import DueTrace

_log = logging.getLogger(__name__)


class SuspectCheck:
    """Implements :class:`Understands`: ``usual`` understands all batches without a suspect, ``make`` makes the process
    for all others, when it is first needed. On one event loop."""

    def __init__(self, usual: Understands, suspects: Collection[bytes], make: Callable[[], Workers] | None) -> None:
        self._usual, self._suspects, self._make = usual, suspects, make
        self._workers: Workers | None = None
        self.room = usual.room

    async def of(self, due: Sequence[DueTrace]) -> Ready:
        """See :class:`Understands`."""
        if not self._suspects or not any(each.trace_id in self._suspects for each in due):
            return await self._usual.of(due)
        return await (await self._process() or self._usual).of(due)

    def stop(self) -> None:
        """See :class:`Understands`."""
        self._usual.stop()
        if self._workers is not None:
            self._workers.stop()

    async def rest(self) -> None:
        """Ends the process for suspects once no suspect is left."""
        if self._workers is not None and not self._suspects:
            await self.close()

    async def close(self) -> None:
        """Ends the process for suspects."""
        workers, self._workers = self._workers, None
        if workers is not None:
            await workers.close()

    async def _process(self) -> Workers | None:
        """Returns the process for suspects; ``None`` if none can be started: the collector understands them itself."""
        if self._workers is None and self._make is not None:
            workers = self._make()
            try:
                await workers.start()
            except ChildStartError as error:
                self._make = None
                await workers.close()
                _log.error("traces over which the process before ended are decided in this one: %s", error)
            else:
                self._workers = workers
        return self._workers
