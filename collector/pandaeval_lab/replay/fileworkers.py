"""Has the traces of a replay understood by further processes, ahead of the one that files them, in order."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime.calls import ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import Understood
from pandaeval_collector.pipeline.line_processes import MOST_DEATHS, LineProcess, failure
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
        self._loop, trace_limit = asyncio.Runner(), setup.settings.trace_timeout
        self._processes = [
            LineProcess(
                "a process that reads traces",
                setup,
                environ,
                lambda _: None,
                limit=PATIENCE_SECONDS,
                trace_limit=trace_limit,
            )
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
        the caller files it. A trace over which processes end is set aside. Raises ``UserError`` where none starts."""
        ahead: deque[tuple[Batch, asyncio.Task[Sequence[Understood]]]] = deque()
        for batch in batches:
            asked = self._loop.get_loop().create_task(self._understand(batch))
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # none may wait for it
            ahead.append((batch, asked))
            if len(ahead) > 2 * len(self._processes):
                yield self._answered(*ahead.popleft())
        while ahead:
            yield self._answered(*ahead.popleft())

    async def _understand(self, batch: Batch, deaths: int = MOST_DEATHS, alone: bool = False) -> Sequence[Understood]:
        """``alone``: the trace is tried again by itself; ``deaths``: over which it is given up then."""
        process = min(self._processes, key=lambda process: process.busy)
        request = [replace(trace, known=frozenset()) for trace in batch]
        try:
            understood: Sequence[Understood] = pickle.loads(  # noqa: S301 - from our child
                await process.over("understand", request, watched=alone)
            )
        except ChildEndedError as error:
            if not error.over_it:
                return await self._understand(batch, deaths, alone)
            if len(batch) > 1:
                return [one for trace in batch for one in await self._understand([trace], alone=True)]
            if deaths > 1 and not (alone and error.hung):
                return await self._understand(batch, deaths - 1, alone=True)
            return [Understood("", failed=failure(error))]
        return understood

    def _answered(self, batch: Batch, asked: asyncio.Task[Sequence[Understood]]) -> tuple[Batch, Sequence[Understood]]:
        async def answer() -> Sequence[Understood]:
            return await asked

        return batch, self._loop.run(answer())


async def _all(work: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*work)
