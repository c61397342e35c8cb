"""Has the traces of a file run understood by further processes, ahead of the one that files them, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Ready, Understood
from pandaeval_collector.pipeline.workers import Workers
from pandaeval_otel.assembly import DueTrace

Batch = Sequence[DueTrace]


class FileWorkers:
    """Runs the line's pool of processes for a caller without an event loop. To be closed."""

    def __init__(self, pool: Workers) -> None:
        """Starts the processes. Raises ``ChildStartError``."""
        self._pool, self._loop = pool, asyncio.Runner()
        try:
            self._loop.run(pool.start())
        except BaseException:
            self.close()
            raise

    def understood(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Sequence[Understood]]]:
        """Yields each batch with what was understood of its traces, in the same order; the processes work ahead while
        the caller files it. Raises ``UserError`` that names the trace where a process ended over one."""
        ahead: deque[tuple[Batch, asyncio.Task[Ready]]] = deque()
        for batch in batches:
            ahead.append((batch, self._loop.get_loop().create_task(self._pool.of(batch))))
            if len(ahead) >= self._pool.room:
                yield self._answered(*ahead.popleft())
        while ahead:
            yield self._answered(*ahead.popleft())

    def close(self) -> None:
        """Ends all processes."""
        with self._loop:
            self._loop.run(self._pool.close())

    def _answered(self, batch: Batch, asked: asyncio.Task[Ready]) -> tuple[Batch, Sequence[Understood]]:
        async def ready() -> Ready:
            return await asked

        try:
            return batch, self._loop.run(ready())()
        except NotUnderstoodError as error:
            raise UserError(f"{error}; nothing more is scored. --workers 0 does without such processes") from error
