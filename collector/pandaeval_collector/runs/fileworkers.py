"""Has the traces of a file run understood by further processes, ahead of the one that files them, in order."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.metric_cpu import CPU
from pandaeval_collector.base.runtime.calls import Calls, ChildEndedError
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.serving import Tell
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import Understood
from pandaeval_collector.pipeline.line_processes import MODULE, SECONDS_PER_BYTE
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import StoreReader
from pandaeval_otel.assembly import DueTrace

PATIENCE_SECONDS = 60.0
"""How long a process may be at a batch, beside what its bytes take."""
Batch = Sequence[DueTrace]


@dataclass(frozen=True, slots=True)
class FileSetup:
    """What a process that understands the traces of a file run is told: the run's store, how to embed, what to
    score."""

    store: Path
    embedding: str
    settings: EvaluatorSettings

    def open(self, _: Tell) -> Line:
        """Makes the line, in its own process."""
        return Line(StoreReader(self.store), Evaluator(load(self.embedding), self.settings))


class FileWorkers:
    """Understands traces for a caller without an event loop, on a thread whose loop reads answers while the caller
    files earlier ones. To be closed."""

    def __init__(self, number: int, setup: FileSetup, environ: Mapping[str, str]) -> None:
        """Starts ``number`` processes. Raises ``UserError`` where one does not start."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pandaeval-workers", daemon=True)
        self._thread.start()
        self._processes: list[Calls] = []
        try:
            asyncio.run_coroutine_threadsafe(self._start(number, setup, environ), self._loop).result()
        except ChildStartError as error:
            self.close()
            raise UserError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def understood(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Sequence[Understood]]]:
        """Yields each batch with what was understood of its traces, in the same order. Raises ``UserError`` that names
        the trace where a process ended over one."""
        ahead: deque[tuple[Batch, Future[bytes]]] = deque()
        for batch in batches:
            ahead.append((batch, asyncio.run_coroutine_threadsafe(self._understand(batch), self._loop)))
            if len(ahead) > 2 * len(self._processes):
                yield _answered(*ahead.popleft())
        while ahead:
            yield self._answered(*ahead.popleft())

    def close(self) -> None:
        """Ends all processes."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self, number: int, setup: FileSetup, environ: Mapping[str, str]) -> None:
        handlers = {"spent": CPU.add}
        self._processes = [
            Calls("a process that reads traces (--workers)", MODULE, setup, environ, handlers=handlers, in_turn=True)
            for _ in range(number)
        ]
        await asyncio.gather(*(process.start() for process in self._processes))

    async def _understand(self, batch: Batch) -> bytes:
        process = min(self._processes, key=lambda process: process.busy)
        patience = PATIENCE_SECONDS + sum(trace.size for trace in batch) * SECONDS_PER_BYTE
        understood: bytes = await process.ask(
            "understand", [replace(trace, known=frozenset()) for trace in batch], patience=patience
        )
        return understood

    async def _close(self) -> None:
        await asyncio.gather(*(process.close() for process in self._processes))
        unanswered = asyncio.all_tasks() - {asyncio.current_task()}
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)


def _answered(batch: Batch, answer: Future[bytes]) -> tuple[Batch, Sequence[Understood]]:
    try:
        return batch, pickle.loads(answer.result())  # noqa: S301 - from our child
    except (ChildEndedError, ChildStartError) as error:
        raise UserError(f"{error}; nothing more is scored. --workers 0 does without such processes") from error
