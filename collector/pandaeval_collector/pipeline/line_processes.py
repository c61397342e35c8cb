"""The processes of the line, from the front's side: they look into what traces hold, and the front does not.

One process files traces under their sessions and makes every decision; with ``line.workers`` others understand traces
beside it. All read the store and write nothing, so any of them may be killed at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pandaeval_collector.base.runtime.calls import Calls, ChildEndedError
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.time_limit import SECONDS_PER_BYTE, TRACE_SECONDS
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_otel.assembly import DueTrace

MODULE = "pandaeval_collector.pipeline.line.main"
MOST_DEATHS = 3
"""Processes that may die over a request that each was given alone. One may be killed for reasons of its own."""
WATCHED_STEP = 1.5
"""A trace that is tried again alone may be at one step for so many times what it may take: the process itself should
have ended that."""


@dataclass(frozen=True, slots=True)
class HeldBatch:
    """A batch that was understood. ``held``: what :meth:`LineProcesses.file` gives to the process that files: the
    number under which that process (``pid``) keeps the batch itself, or what another one answered, packed;
    ``watched``: it is one trace, tried again alone."""

    held: int | bytes
    pid: int | None = None
    watched: bool = False


class LineProcess(Calls):
    """Asks one process of the line. Of a trace that is tried again alone it is told each step, so that an error can
    name the one over which the process ended."""

    def __init__(
        self,
        what: str,
        setup: Any,
        environ: Mapping[str, str],
        measured: Callable[..., None],
        *,
        limit: float,
        trace_limit: float,
        count: Callable[..., None] = lambda *_: None,
        keep: bool = False,
    ) -> None:
        """``limit``: seconds that it may be at traces, beside what their bytes take; at each step of one that is
        watched a little more than ``trace_limit``."""
        handlers = {"measured": measured, "step": self._note}
        super().__init__(what, MODULE, setup, environ, count=count, handlers=handlers, in_turn=True, keep=keep)
        self._limit, self._step_limit = limit, min(limit, trace_limit * WATCHED_STEP)
        self._step = ""

    def _note(self, step: str) -> None:
        self._step = step

    async def over(self, name: str, due: Sequence[DueTrace], *arguments: Any, watched: bool) -> Any:
        """Asks the process about traces; ``watched``: about one that is tried again alone. Raises what :meth:`ask`
        raises."""
        patience = self._step_limit if watched else self._limit
        patience += sum(trace.size for trace in due) * SECONDS_PER_BYTE
        try:
            return await self.ask(name, due, *arguments, watched, patience=patience)
        except ChildEndedError as error:
            error.step = self._step if watched and error.over_it else ""
            raise


def failure(error: ChildEndedError) -> tuple[str, str]:
    """Returns the kind and text of the error by which a trace is set aside that a process ended over."""
    over = f" over {error.step}" if error.step else ""
    return "worker_hung" if error.hung else "worker_ended", f"{error}{over}"


class DecidesTraces(Protocol):
    """What the front asks of the line. ``room``: batches that it can work on at a time."""

    room: int

    async def understand(self, due: Sequence[DueTrace], watched: bool = False) -> HeldBatch: ...
    async def file(self, due: Sequence[DueTrace], understood: HeldBatch) -> Decision: ...
    async def decide(self, name: str, *arguments: Any) -> Decision: ...
    async def ask(self, name: str, *arguments: Any) -> Any: ...
    def give_up(self) -> None: ...


class LineProcesses:
    """Implements :class:`DecidesTraces`. On one event loop."""

    def __init__(
        self,
        number: int,
        setup: Any,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        timeout: float = 60.0,
        trace_timeout: float = TRACE_SECONDS,
    ) -> None:
        """``number``: processes, at least 1; ``setup``: what they are told; ``timeout``: seconds that one may be at a
        request, beside :data:`SECONDS_PER_BYTE`, before it is killed; ``trace_timeout``: after which it is to end a
        trace itself."""

        measured = partial(telemetry.take_in, "line")
        count = partial(telemetry.add, "pandaeval.workers")
        self._all = [
            LineProcess(
                "a process of the line",
                setup,
                environ,
                measured,
                limit=timeout,
                trace_limit=trace_timeout,
                count=count,
                keep=True,
            )
            for _ in range(number)
        ]
        self._files = self._all[0]
        self._timeout, self._stopping = timeout, False
        self.room = number + 1

    async def start(self) -> None:
        """Starts the processes and returns when all can be asked. Raises ``ChildStartError``; :meth:`close` has to be
        called all the same."""
        for error in await asyncio.gather(*(process.start() for process in self._all), return_exceptions=True):
            if error is not None:
                raise error

    async def understand(self, due: Sequence[DueTrace], watched: bool = False) -> HeldBatch:
        """Has the process with the least to do read and score traces, each by itself. ``watched``: one trace, tried
        again alone."""
        request = [replace(trace, known=frozenset()) for trace in due]
        process = min(self._all, key=lambda process: (process.pid is None, process.busy))
        name = "keep_understood" if process is self._files else "understand"
        held = await self._started(lambda: process.over(name, request, watched=watched))
        return HeldBatch(held, process.pid if process is self._files else None, watched)

    async def file(self, due: Sequence[DueTrace], understood: HeldBatch) -> Decision:
        """Has a batch filed under its sessions. Raises ``ChildEndedError`` where the process that kept it has ended."""
        if understood.pid is not None and understood.pid != self._files.pid:
            raise ChildEndedError("a process of the line", understood.pid, "ended", over_it=False)
        held, watched = understood.held, understood.watched
        decision: Decision = await self._started(lambda: self._files.over("file", due, held, watched=watched))
        return decision

    async def decide(self, name: str, *arguments: Any) -> Decision:
        """Has one of the line's other decisions made; once more where the process died over it, as it may have been
        killed for reasons of its own. Raises ``ChildEndedError``."""
        deaths = 0
        while True:
            try:
                decision: Decision = await self.ask(name, *arguments)
            except ChildEndedError as error:
                deaths += error.over_it
                if self._stopping or error.hung or deaths >= MOST_DEATHS:
                    raise
            else:
                return decision

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Asks the process that files."""
        return await self._started(lambda: self._files.ask(name, *arguments, patience=self._timeout))

    def give_up(self) -> None:
        """Ends what the processes are at, and starts none any more."""
        self._stopping = True
        for process in self._all:
            process.stop()
            process.kill()

    async def close(self) -> None:
        """Ends all processes."""
        self.give_up()
        await asyncio.gather(*(process.close() for process in self._all))

    async def _started(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Asks a process, and again while it does not start: there is no other to ask."""
        while True:
            try:
                return await ask()
            except ChildStartError:
                if self._stopping:
                    raise
