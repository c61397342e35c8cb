"""Calls to a child process that starts on demand, in the protocol of :mod:`pandaeval_collector.base.runtime.peer`."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.child import Child, ChildStartError, start_with
from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.base.runtime.peer import EDITION, PICKLED, ChildEndedError, Codec, Handlers, OnPiece, Peer

_log = logging.getLogger(__name__)


class Calls:
    """Calls a child process, restarted on demand. For a single event loop."""

    def __init__(
        self,
        what: str,
        module: str,
        setup: Any,
        environ: Mapping[str, str],
        *,
        count: Callable[..., None] = lambda *_: None,
        handlers: Handlers | None = None,
        codec: Codec = PICKLED,
        silent: bool = False,
        in_turn: bool = False,
        keep: bool = False,
        backoff: Backoff | None = None,
    ) -> None:
        """Prepare the calls, without a start.

        ``what``: name in messages. ``module``: run with ``setup``. ``count``: called with ``started``, ``not_started``
        or ``ended``. ``silent``: discard standard error. ``in_turn``: the process handles one request at a time.
        ``keep``: restart without waiting for a call. ``backoff``: seconds before a restart.
        """
        self._what, self._module, self._environ = what, module, dict(environ)
        self.setup = setup
        """For the next start."""
        self._count, self._handlers, self._codec = count, handlers or {}, codec
        self._silent, self._in_turn, self._keep = silent, in_turn, keep
        self._backoff, self._not_before = backoff or Backoff(), 0.0
        self._running: tuple[Child, Peer] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._hung: Child | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running[0].pid

    @property
    def busy(self) -> int:
        return 0 if self._running is None else self._running[1].busy

    @property
    def pause(self) -> float:
        """Seconds until the next start is allowed, after an end or a failed start."""
        return max(0.0, self._not_before - time.monotonic())

    async def start(self) -> None:
        """Start the process unless it runs, after the pause. Raises :class:`ChildStartError`."""
        if self._running is not None:
            return
        if self._starting is None:
            self._starting = self._begin(self._start())
        starting = self._starting
        await asyncio.wait({starting})  # the first caller can be cancelled while others wait
        if starting.cancelled():
            raise ChildStartError(f"{self._what} is not started any more")
        starting.result()

    async def ask(self, name: str, *arguments: Any, patience: float = math.inf, on_piece: OnPiece | None = None) -> Any:
        """Call as :meth:`Peer.ask`; kills the process after ``patience`` silent seconds.

        Also raises :class:`ChildStartError` and :class:`ChildEndedError`.
        """
        await self.start()
        if self._running is None:
            raise ChildStartError(f"{self._what} ended at its start")
        return await self._running[1].ask(name, *arguments, patience=patience, on_piece=on_piece)

    def tell(self, name: str, *arguments: Any) -> None:
        if self._running is not None:
            self._running[1].tell(name, *arguments)

    def kill(self) -> None:
        """Kill the process; its requests end with :class:`ChildEndedError`."""
        if self._running is not None:
            self._running[0].kill()

    def stop(self) -> None:
        """Start no more processes. A running process still answers."""
        self._stopped = True
        if self._starting is not None:
            self._starting.cancel()

    async def close(self) -> None:
        """Kill the process, if it runs, and start none any more."""
        self.stop()
        self.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work, name=self._module)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as seen; callers that wait for the start get it

    async def _start(self) -> None:
        try:
            if self._stopped:
                raise ChildStartError("is not started any more")
            await asyncio.sleep(self.pause)
            first = self._codec.pack((EDITION, logging.getLogger().getEffectiveLevel(), self.setup))
            child, fault = await start_with(first, self._module, self._environ, self._silent)
            if fault:
                child.kill()
                await child.wait()
                raise ChildStartError(f"does not start: {fault.decode(errors='replace')}")
        except ChildStartError as error:
            self._count("not_started")
            self._not_before = time.monotonic() + self._backoff.failed()
            if not self._stopped:
                _log.error("%s %s", self._what, error)
            raise ChildStartError(f"{self._what} {error}") from error
        finally:
            self._starting = None
        self._count("started")
        # A fail point that killed a process is not set in the next process.
        self._environ[failpoints.VARIABLE] = failpoints.lasting(self._environ.get(failpoints.VARIABLE, ""))

        def end_hanging() -> None:
            self._hung = child
            child.kill()

        peer = Peer(child.send, self._codec, self._handlers, in_turn=self._in_turn, on_hang=end_hanging, child=child)
        self._running = child, peer
        self._begin(self._read(child, peer))

    async def _read(self, child: Child, peer: Peer) -> None:
        while (frame := await child.receive()) is not None:
            try:
                peer.take(self._codec.unpack(frame))
            except Exception:  # noqa: BLE001 - a violated protocol: the process is no longer trusted
                _log.exception("%s sent an unreadable message", self._what)
                child.kill()
            self._backoff.succeeded()
        self._running = None
        self._not_before = time.monotonic() + (0.0 if self._stopped else self._backoff.failed())
        code = await child.wait()
        why = "hung" if child is self._hung else f"signal_{-code}" if code < 0 else f"exit_{code}"
        if not self._stopped:
            self._count("ended", 1, why)
            words = (self._what, child.pid, why.replace("_", " "), peer.busy)
            _log.error("%s ended (process %d, %s) with %d requests under way", *words)
        peer.end(lambda over_it: ChildEndedError(self._what, child.pid, why, over_it))
        if self._keep and not self._stopped:
            self._begin(self._start_again())

    async def _start_again(self) -> None:
        while not self._stopped:
            with suppress(ChildStartError):  # it is logged, and the next start waits
                return await self.start()
