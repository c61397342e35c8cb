"""Has the traces of a replay understood by further processes, ahead of the one that files them, in order."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.metric_cpu import CPU
from pandaeval_collector.base.runtime.calls import Calls, ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import Understood
from pandaeval_collector.pipeline.line_processes import MODULE, SECONDS_PER_BYTE
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import StoreReader
from pandaeval_otel.assembly import DueTrace

FEW = 10_000
"""Fewer spans are scored by one process in less time than others take to start."""
PATIENCE_SECONDS = 60.0
"""How long a process may be at a batch, beside what its bytes take."""
Batch = Sequence[DueTrace]


@dataclass(frozen=True, slots=True)
class FileSetup:
    """What a process that understands traces is told: the store, how to embed, what to
    score."""

    store: Path
    embedding: str
    settings: EvaluatorSettings

    def open(self, _: Telemetry) -> Line:
        """Makes the line, in its own process."""
        return Line(StoreReader(self.store), Evaluator(load(self.embedding), self.settings))


class FileWorkers:
    """Understands traces in processes, for a caller without an event loop. A context manager."""

    def __init__(self, number: int, setup: FileSetup, environ: Mapping[str, str]) -> None:
        """``number``: processes, which start when the context is entered; that raises ``UserError`` where one does not
        start."""
        self._loop, handlers = asyncio.Runner(), {"measured": lambda spent, _: CPU.add(spent)}
        self._processes = [
            Calls("a process that reads traces", MODULE, setup, environ, handlers=handlers, in_turn=True)
            for _ in range(number)
        ]

    def __enter__(self) -> FileWorkers:
        try:
            self._loop.run(_all(process.start() for process in self._processes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._loop:
            self._loop.run(_all(process.close() for process in self._processes))

    def understood(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Sequence[Understood]]]:
        """Yields each batch with what was understood of its traces, in the same order; the processes work ahead while
        the caller files it. Raises ``UserError`` that names the trace where a process ended over one."""
        ahead: deque[tuple[Batch, asyncio.Task[bytes]]] = deque()
        for batch in batches:
            asked = self._loop.get_loop().create_task(self._understand(batch))
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # none may wait for it
            ahead.append((batch, asked))
            if len(ahead) > 2 * len(self._processes):
                yield self._answered(*ahead.popleft())
        while ahead:
            yield self._answered(*ahead.popleft())

    async def _understand(self, batch: Batch) -> bytes:
        process = min(self._processes, key=lambda process: process.busy)
        patience = PATIENCE_SECONDS + sum(trace.size for trace in batch) * SECONDS_PER_BYTE
        request = [replace(trace, known=frozenset()) for trace in batch]
        understood: bytes = await process.ask("understand", request, patience=patience)
        return understood

    def _answered(self, batch: Batch, asked: asyncio.Task[bytes]) -> tuple[Batch, Sequence[Understood]]:
        async def answer() -> bytes:
            return await asked

        try:
            return batch, pickle.loads(self._loop.run(answer()))  # noqa: S301 - from our child
        except ChildEndedError as error:
            raise UserError(f"{error}; nothing more is scored. --workers 0 does without such processes") from error


async def _all(work: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*work)
