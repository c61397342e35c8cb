"""One life of a stepped collector, from opening the store to death."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any, TypeVar, cast
from unittest.mock import patch

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.exporters.delivery.outbox import Outbox
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.outcome import Patience
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory, client_of
from pandaeval_collector.pipeline.accounting import residual
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_collector.store.clock import StoreClock
from support.line_here import LineHere, filed_through
from support.stepped.loop import LIFE, InlineExecutor, SteppedLoop, SteppedWriter
from support.stepped.outside import Calls, JudgeByHand

T = TypeVar("T")
_EPOCH = 1_790_000_000.0


class Life:
    """Starts with :meth:`start`. ``is_dead``: later actions have no outside effect."""

    def __init__(
        self,
        loop: SteppedLoop,
        folder: Path,
        evaluator: Evaluator,
        judge: JudgeByHand,
        exporters: Sequence[Calls],
        hands_over: bool,
        timing: Timing,
    ) -> None:
        self.folder, self._loop = folder, loop
        self.is_dead = False
        self.telemetry = Telemetry()
        self._context = copy_context()
        self._context.run(LIFE.set, self)
        with _stepped():
            self.store = Store(folder, "off", clock=StoreClock(lambda: _EPOCH + loop.time(), loop.time))
            emitter = Emitter({each.source for each in exporters} - {MEMBERS})
            line = LineHere(Line(self.store.reads, evaluator, emitter, hands_over=hands_over))
            self.pipeline = Pipeline(self.store, line, timing, self.telemetry, clock=loop.time, hands_over=hands_over)
            patience = Patience(attempts=1000, first=1.0)
            filing, scores = filed_through(self.pipeline, line), line.line.scores
            desk = client_of(judge, evaluator.settings.judge, StoredMemory(self.store, self.telemetry))
            attempts = Attempts(self.store, scores, evaluator, desk, filing, self.telemetry, patience)
        self.writer.at_once = False
        self._runner = Runner(self.store, attempts, 4)
        self.outboxes = [Outbox(self.store, each, self.telemetry) for each in exporters]
        for outbox in self.outboxes:
            self.pipeline.listen(lambda _, each=outbox: each.wake())  # type: ignore[misc]

    @property
    def writer(self) -> SteppedWriter:
        return cast(SteppedWriter, self.store._writer)

    def run(self, work: Callable[[], T]) -> T:
        """Run a function as code of this life."""
        return self._context.copy().run(work)

    def begin(self, coro: Any) -> Any:
        """Start a task of this life."""
        context: Context = self._context.copy()
        return self._loop.create_task(coro, context=context)

    def start(self) -> Any:
        """Start the collector; the task ends at readiness."""
        return self.begin(self._start())

    async def _start(self) -> None:
        for outbox in self.outboxes:
            await outbox.start()
        await self.pipeline.start()
        await self._runner.start()

    def commit(self) -> None:
        self.run(self.writer.step)

    def residual(self) -> int:
        """Return the unaccounted items."""
        return residual(self.telemetry, self.pipeline.open_items)

    def at_rest(self) -> bool:
        """Return whether no work is left."""
        unsent = any(self.store.outbox.waiting(each.source, each.seq) for each in self.outboxes)
        busy = self.pipeline.open_traces or self.pipeline.open_sessions or self.store.jobs.waiting()
        return not (unsent or busy or self.store.waiting())

    def bury(self) -> None:
        """Cancel tasks and close the store."""
        self.is_dead = True
        for _ in range(5):
            for task in [task for task, life in self._loop.tasks.items() if life is self]:
                task.cancel()
            self._loop.settle()
        self.store.close()


@contextlib.contextmanager
def _stepped() -> Iterator[None]:
    places = ("pandaeval_collector.jobs.job_traces",)
    with contextlib.ExitStack() as patches:
        patches.enter_context(patch("pandaeval_collector.store.store.Writer", SteppedWriter))
        for place in places:
            patches.enter_context(patch(f"{place}.ThreadPoolExecutor", InlineExecutor))
        yield
