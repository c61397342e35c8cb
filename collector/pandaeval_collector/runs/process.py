"""The process of a run, from the collector's side: hands it batches, and asks judges for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.child import Child, ChildStartError, start_with
from pandaeval_collector.judge.call import Caller, CallFailedError, ModelCall, OverBudgetError
from pandaeval_collector.runs import wire
from pandaeval_collector.store import Store
from pandaeval_otel.base.component_errors import ERRORS

_log = logging.getLogger(__name__)


class RunProcessError(UserError):
    """The process of a run does not start."""


class RunProcessEndedError(Exception):
    """The process of a run ended before it answered."""


class Remembers(Protocol):
    """A memory that keeps judges' verdicts."""

    async def keep(self, key: str, body: bytes) -> None: ...


class StoredVerdicts:
    """Implements :class:`Remembers` on a store."""

    def __init__(self, store: Store) -> None:
        self._verdicts = store.verdicts

    async def keep(self, key: str, body: bytes) -> None:
        await asyncio.wrap_future(self._verdicts.keep(key, body))


class RunCost:
    """Sums what the calls of a run's process have cost since the last :meth:`take`."""

    def __init__(self) -> None:
        self.calls, self.tokens, self.cost_usd = 0, 0, 0.0

    def take(self) -> tuple[int, int, float]:
        """Returns calls, tokens and US dollars, and resets them to zero."""
        found = self.calls, self.tokens, self.cost_usd
        self.calls, self.tokens, self.cost_usd = 0, 0, 0.0
        return found


class RunProcess:
    """Runs one process that scores the batches of a run. On one event loop."""

    def __init__(
        self, setup: wire.RunSetup, environ: Mapping[str, str], caller: Caller | None, verdicts: Remembers, at_once: int
    ) -> None:
        """``caller`` asks judges for the process, at most ``at_once`` calls at a time."""
        self._setup, self._environ, self._caller, self._verdicts = setup, dict(environ), caller, verdicts
        self._room = asyncio.Semaphore(at_once)
        self._child: Child | None = None
        self._answer: asyncio.Future[wire.Scored] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.spent = RunCost()

    async def start(self) -> None:
        """Starts the process; returns when it is ready for batches. Raises :class:`RunProcessError`."""
        try:
            self._child, said = await start_with(
                wire.body(self._setup), "pandaeval_collector.runs.worker", self._environ
            )
        except ChildStartError as error:
            raise RunProcessError(f"the process of a run {error}") from error
        ready = wire.unpacked(said)
        if ready[0] != "ready":
            await self.close()
            raise RunProcessError(f"the process of a run does not start: {ready[1]}")
        self._reader = asyncio.create_task(self._read(self._child), name="pandaeval-run-reader")

    async def score(self, batch: wire.TracesToScore) -> wire.Scored:
        """Has the process score a batch; returns its results. Raises :class:`RunProcessEndedError`."""
        if self._child is None or self._reader is None or self._reader.done():
            raise RunProcessEndedError("the process of the run ended")
        self._answer = asyncio.get_running_loop().create_future()
        self._child.send(wire.body(("batch", batch)))
        return await self._answer

    def kill(self) -> None:
        """Kills the process; a waiting :meth:`score` then raises :class:`RunProcessEndedError`."""
        if self._child is not None:
            self._child.kill()

    async def close(self) -> None:
        """Kills the process, and cancels the calls that it made."""
        if self._child is not None:
            self._child.kill()
            await self._child.wait()
        for task in self._tasks:
            task.cancel()
        if self._reader is not None:
            self._tasks.add(self._reader)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, child: Child) -> None:
        try:
            while (message := await child.receive()) is not None:
                self._take(wire.unpacked(message))
        finally:
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(RunProcessEndedError("the process of the run ended"))

    def _take(self, message: Any) -> None:
        match message:
            case ("done", scored) if self._answer is not None and not self._answer.done():
                self._answer.set_result(scored)
            case ("call", number, call):
                self._begin(self._call(number, call))
            case ("keep", number, key, body):
                self._begin(self._keep(number, key, body))
            case ("raised", raised):
                ERRORS.add(raised)
            case ("broken", text):
                _log.error("the process of a run cannot go on: %s", text)

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, number: int, call: ModelCall) -> None:
        answer: Any
        try:
            assert self._caller is not None, "a run without a judge asks none"
            async with self._room:
                answer = await self._caller.complete(call)
            self.spent.calls += 1
            self.spent.tokens += answer.tokens
            self.spent.cost_usd += answer.cost_usd
        except (CallFailedError, OverBudgetError) as error:
            answer = wire.told(error)
        self._write(("answer", number, answer))

    async def _keep(self, number: int, key: str, body: bytes) -> None:
        await self._verdicts.keep(key, body)
        self._write(("kept", number))

    def _write(self, message: Any) -> None:
        if self._child is not None:
            self._child.send(wire.body(message))
