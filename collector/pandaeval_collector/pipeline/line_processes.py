"""Manages scoring workers from the main process, which reads no content.

One process files traces. ``line.workers`` adds processes that understand traces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.peer import ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.time_limit import SECONDS_PER_BYTE
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_otel.assembly import DueTrace

_PROCESS = "a process of the line"
MODULE = "pandaeval_collector.pipeline.line.main"
MOST_DEATHS = 3
"""Processes that may die while they have only this request. A process can be killed for unrelated reasons."""


@dataclass(frozen=True, slots=True)
class HeldBatch:
    """An understood batch. ``held``: its number in the process ``pid``, or a packed answer."""

    held: int | bytes
    pid: int | None = None


class LineProcesses:
    """Decides traces, on one event loop. ``room``: parallel batches."""

    def __init__(
        self,
        number: int,
        setup: Any,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        timeout: float = 60.0,
    ) -> None:
        """``number``: processes, at least 1.

        ``timeout``: seconds for a request until its process is killed, plus :data:`SECONDS_PER_BYTE`.
        """
        handlers = {"measured": partial(telemetry.take_in, "line")}
        count = partial(telemetry.add, "pandaeval.workers")
        self._all = [
            Calls(_PROCESS, MODULE, setup, environ, count=count, handlers=handlers, in_turn=True, keep=True)
            for _ in range(number)
        ]
        self._files = self._all[0]
        self._timeout, self._stopping = timeout, False
        self.room = number + 1

    async def start(self) -> None:
        """Start all processes. Raises ``ChildStartError``; call :meth:`close` anyway."""
        for error in await asyncio.gather(*(process.start() for process in self._all), return_exceptions=True):
            if error is not None:
                raise error

    async def understand(self, due: Sequence[DueTrace]) -> HeldBatch:
        request = [replace(trace, known=frozenset()) for trace in due]
        process = min(self._all, key=lambda process: (process.pid is None, process.busy))
        name = "keep_understood" if process is self._files else "understand"
        held = await self._over(process, name, request)
        return HeldBatch(held, process.pid if process is self._files else None)

    async def file(self, due: Sequence[DueTrace], understood: HeldBatch) -> Decision:
        """File a batch under its sessions. Raises ``ChildEndedError``."""
        if understood.pid is not None and understood.pid != self._files.pid:
            raise ChildEndedError(_PROCESS, understood.pid, "ended", over_it=False)
        decision: Decision = await self._over(self._files, "file", due, understood.held)
        return decision

    async def decide(self, name: str, *arguments: Any) -> Decision:
        """Make another decision, with retries. Raises ``ChildEndedError``.

        Repeats it until the process hangs, or :data:`MOST_DEATHS` processes ended because of the decision.
        """
        deaths = 0
        while True:
            try:
                decision: Decision = await self._ask(self._files, self._timeout, name, *arguments)
            except ChildEndedError as error:
                deaths += error.over_it
                if self._stopping or error.hung or deaths >= MOST_DEATHS:
                    raise
            else:
                return decision

    def give_up(self) -> None:
        self._stopping = True
        for process in self._all:
            process.stop()
            process.kill()

    async def close(self) -> None:
        self.give_up()
        await asyncio.gather(*(process.close() for process in self._all))

    async def _over(self, process: Calls, name: str, due: Sequence[DueTrace], *arguments: Any) -> Any:
        patience = self._timeout + sum(trace.size for trace in due) * SECONDS_PER_BYTE
        return await self._ask(process, patience, name, due, *arguments)

    async def _ask(self, process: Calls, patience: float, name: str, *arguments: Any) -> Any:
        while True:
            try:
                return await process.ask(name, *arguments, patience=patience)
            except ChildStartError:
                if self._stopping:
                    raise
