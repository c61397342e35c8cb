"""One worker process, from the collector's side: starts it, and starts it again whenever it ended."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.backoff import Backoff
from pandaeval_collector.base.runtime.child import Child, ChildStartError, start_with
from pandaeval_collector.base.telemetry import Telemetry

_log = logging.getLogger(__name__)


class WorkerStartError(UserError):
    """A worker process does not come up."""


class WorkerEndedError(Exception):
    """A worker process ended before it answered. ``over_it``: it was at this request, and no other; ``hung``: it was
    ended because it took too long for the request."""

    def __init__(self, over_it: bool, hung: bool = False, which: str = "a process of the line") -> None:
        super().__init__(f"{which} {'hung' if hung else 'ended'} over these traces")
        self.over_it, self.hung = over_it, hung


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that has no answer yet; ``patience``: how long the process may be at it, seconds."""

    answer: asyncio.Future[bytes]
    patience: float


class WorkerSlot:
    """Keeps one worker process running: starts another when it ends. On one event loop."""

    def __init__(
        self, setup: bytes, environ: Mapping[str, str], telemetry: Telemetry, on_change: Callable[[], None]
    ) -> None:
        """``on_change`` is called when there is a process to ask again."""
        self._setup, self._environ, self._telemetry, self._on_change = setup, dict(environ), telemetry, on_change
        self._process: Child | None = None
        self._asked: deque[_Asked] = deque()
        self._limit: asyncio.TimerHandle | None = None
        """Ends the process over the request that it is at."""
        self._hung = False
        self._backoff = Backoff()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def is_ready(self) -> bool:
        """Whether the process takes requests."""
        return self._process is not None

    @property
    def busy(self) -> int:
        """The number of requests that the process has not answered."""
        return len(self._asked)

    @property
    def pid(self) -> int | None:
        """The id of the process that runs, if one does."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Starts the process and returns when it can be asked. Raises :class:`WorkerStartError`."""
        process = await self._start()
        self._task = asyncio.create_task(self._keep(process), name="pandaeval-worker")

    async def ask(self, request: bytes, patience: float) -> bytes:
        """Sends a request and returns its answer. ``patience``: how many seconds it may take from its turn on; then the
        process is ended. Raises :class:`WorkerEndedError`."""
        process = self._process
        if process is None:
            raise WorkerEndedError(over_it=False)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(answer, patience))
        if len(self._asked) == 1:
            self._watch()
        process.send(request)
        return await answer

    async def close(self) -> None:
        """Ends the process."""
        self._closing = True
        process = self._process
        if process is not None:
            await process.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self, process: Child) -> None:
        while True:
            await self._read(process)
            code = await process.wait()
            self._process = None
            if self._closing:
                return
            self._ended(process.pid, code)
            process = await self._again()

    async def _again(self) -> Child:
        while True:
            await asyncio.sleep(self._backoff.failed())
            try:
                return await self._start()
            except WorkerStartError as error:
                _log.error("%s; trying again", error)
                self._telemetry.add("pandaeval.workers", "not_started")

    async def _read(self, process: Child) -> None:
        """Hands out answers until the process ends."""
        while (answer := await process.receive()) is not None:
            asked = self._asked.popleft()
            self._watch()
            if not asked.answer.done():
                asked.answer.set_result(answer)
            self._backoff.succeeded()

    def _watch(self) -> None:
        """Begins the time limit of the oldest request, whose turn it is."""
        if self._limit is not None:
            self._limit.cancel()
        asked = self._asked[0] if self._asked else None
        self._limit = asyncio.get_running_loop().call_later(asked.patience, self._end) if asked is not None else None

    def _end(self) -> None:
        if self._process is not None:
            self._hung = True
            self._process.kill()

    def _ended(self, pid: int, code: int) -> None:
        hung, self._hung = self._hung, False
        why = "hung" if hung else f"signal_{-code}" if code < 0 else f"exit_{code}"
        self._telemetry.add("pandaeval.workers", "ended", 1, why)
        which = f"process {pid} of the line ({why.replace('_', ' ')})"
        asked, self._asked = self._asked, deque()
        self._watch()
        for number, each in enumerate(asked):
            if not each.answer.done():
                each.answer.set_exception(WorkerEndedError(over_it=number == 0, hung=hung, which=which))

    async def _start(self) -> Child:
        try:
            process, fault = await start_with(self._setup, "pandaeval_collector.pipeline.workers.main", self._environ)
        except ChildStartError as error:
            raise WorkerStartError(f"a process of the line (line.workers) {error}") from error
        if fault:
            process.kill()
            await process.wait()
            why = fault.decode(errors="replace")
            raise WorkerStartError(f"a process of the line (line.workers) does not start: {why}")
        self._telemetry.add("pandaeval.workers", "started")
        # A point that killed one process is not armed in the next.
        self._environ[failpoints.VARIABLE] = failpoints.lasting(self._environ.get(failpoints.VARIABLE, ""))
        self._process = process
        self._on_change()
        return process
