"""Has the traces of a file run understood by further processes, ahead of the one that files them, in order."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Ready, Understood
from pandaeval_collector.pipeline.workers import Workers
from pandaeval_otel.assembly import DueTrace

Batch = Sequence[DueTrace]


class FileWorkers:
    """Runs the line's pool of processes for a caller without an event loop, on a thread whose loop reads answers while
    the caller files earlier ones. To be closed."""

    def __init__(self, make: Callable[[], Workers]) -> None:
        """Starts the processes. Raises ``ChildStartError``."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pandaeval-workers", daemon=True)
        self._thread.start()
        self._pool: Workers | None = None
        try:
            self._pool = asyncio.run_coroutine_threadsafe(_made(make), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._pool.start(), self._loop).result()
        except BaseException:
            self.close()
            raise

    def understood(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Sequence[Understood]]]:
        """Yields each batch with what was understood of its traces, in the same order. Raises ``UserError`` that names
        the trace where a process ended over one."""
        assert self._pool is not None
        ahead: deque[tuple[Batch, Future[Ready]]] = deque()
        for batch in batches:
            ahead.append((batch, asyncio.run_coroutine_threadsafe(self._pool.of(batch), self._loop)))
            if len(ahead) >= self._pool.room:
                yield _answered(*ahead.popleft())
        while ahead:
            yield _answered(*ahead.popleft())

    def close(self) -> None:
        """Ends all processes."""
        if self._pool is not None:
            asyncio.run_coroutine_threadsafe(_closed(self._pool), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(make: Callable[[], Workers]) -> Workers:
    return make()  # on its loop


async def _closed(pool: Workers) -> None:
    await pool.close()
    unanswered = asyncio.all_tasks() - {asyncio.current_task()}
    for task in unanswered:
        task.cancel()
    await asyncio.gather(*unanswered, return_exceptions=True)


def _answered(batch: Batch, ready: Future[Ready]) -> tuple[Batch, Sequence[Understood]]:
    try:
        return batch, ready.result()()
    except NotUnderstoodError as error:
        raise UserError(f"{error}; nothing more is scored. --workers 0 does without such processes") from error
