"""Answers what is read of the API in a process of its own: to render a trace of thirteen megabytes takes a second, in
which the interpreter of the collector would take no span in.

The two speak in frames, each a pickled tuple that begins with its kind. To the process: a :class:`ReadSetup` first,
then ``("ask", n, scope)``, ``("more", n)`` for the next piece of an answer, ``("drop", n)`` when nobody reads it any
more, and ``("told", n, value or error)``. From it: an empty frame when it is ready, then ``("send", n, [ASGI
messages])`` with one piece of a body at most, ``("end", n)``, ``("work", n, name, arguments)`` for what only the
collector can tell (:class:`Work`) and ``("raised", [RaisedErrors])``. Both ends are the same program on the same
machine, and no other process can write to the pipes.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import math
import sqlite3
import time
from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pandaeval_collector.base.runtime.backoff import Backoff
from pandaeval_collector.base.runtime.child import Child, ChildStartError, start_with
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.runs import wire
from pandaeval_collector.show.api.refusals import refusal
from pandaeval_collector.show.api.work import ReadSetup, Work
from pandaeval_otel.base.component_errors import ERRORS

_log = logging.getLogger(__name__)

MODULE = "pandaeval_collector.show.api.read_worker"
_PATIENCE_S = 60.0
"""A process that is asked and says nothing for so long hangs, and is ended."""
_TOLD = ("type", "http_version", "method", "scheme", "path", "raw_path", "root_path", "app_root_path", "query_string")
_WHY = "the process that answers what is read is not there (it ended, and is started again): come back in a moment"


class _NotThereError(Exception):
    """The process cannot be asked. The argument is how many seconds to wait before it may be started."""


class ReadProcess:
    """Passes requests to the process, as an ASGI application. Starts it when a request needs it. On one event loop."""

    def __init__(self, setup: ReadSetup, work: Work, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        self._setup, self._work, self._environ, self._telemetry = setup, work, environ, telemetry
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[Child] | None = None
        self._closing = False
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Queue[list[Message] | None]] = {}
        """Pieces of each answer by the number of its request; ``[]`` at its end, ``None`` when the process ended."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._backoff, self._not_before, self._heard = Backoff(1.0), 0.0, 0.0

    @property
    def pid(self) -> int | None:
        """The id of the running process, if there is one."""
        return None if self._child is None else self._child.pid

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            child = await self._running()
        except _NotThereError as error:
            await _not_there(error.args[0])(scope, receive, send)
            return
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.Queue()
        child.send(wire.body(("ask", number, _told(scope))))
        gone = asyncio.ensure_future(_gone(receive))
        begun = False
        try:
            while messages := await self._next(answer, child):
                for message in messages:
                    await send(message)
                begun = True
                if gone.done():
                    return
                child.send(wire.body(("more", number)))
            if messages is None and not begun:
                await _not_there(1.0)(scope, receive, send)
        finally:
            gone.cancel()
            if self._answers.pop(number, None) is not None:
                child.send(wire.body(("drop", number)))

    async def close(self) -> None:
        """Ends the process and all answers under way."""
        self._closing = True
        if self._child is not None:
            self._child.kill()
        if self._reader is not None:
            await self._reader
        tasks = [*self._tasks, *filter(None, [self._starting])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _running(self) -> Child:
        """Returns the process, started if need be. Raises :class:`_NotThereError`."""
        if self._child is not None:
            return self._child
        if self._starting is None:
            wait = math.inf if self._closing else self._not_before - time.monotonic()
            if wait > 0.0:
                raise _NotThereError(min(wait, _PATIENCE_S))
            self._starting = asyncio.create_task(self._start(), name="pandaeval-read-process-start")
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)  # who asked first may hang up, others wait, too

    def _started(self, task: asyncio.Task[Child]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # marks it as seen: the callers get it, if any is left

    async def _start(self) -> Child:
        try:
            child, fault = await start_with(wire.body(self._setup), MODULE, self._environ)
        except ChildStartError as error:
            raise self._failed(str(error)) from error
        if fault:
            child.kill()
            await child.wait()
            raise self._failed(f"does not start: {fault.decode(errors='replace')}")
        self._telemetry.add("pandaeval.readers", "started")
        self._child = child
        self._reader = asyncio.create_task(self._read(child), name="pandaeval-read-process")
        return child

    def _failed(self, why: str) -> _NotThereError:
        self._telemetry.add("pandaeval.readers", "not_started")
        _log.error("the process that answers what is read (server.read_process) %s", why)
        return _NotThereError(self._pause())

    def _pause(self) -> float:
        pause = self._backoff.failed()
        self._not_before = time.monotonic() + pause
        return pause

    async def _read(self, child: Child) -> None:
        """Handles the process's messages until it ends."""
        while (frame := await child.receive()) is not None:
            self._heard = time.monotonic()
            self._take(child, wire.unpacked(frame))
        self._child = None
        waiting, self._answers = self._answers, {}
        if not self._closing:
            self._pause()
        for answer in waiting.values():
            answer.put_nowait(None)
        code = await child.wait()
        if not self._closing:
            why = f"signal_{-code}" if code < 0 else f"exit_{code}"
            self._telemetry.add("pandaeval.readers", "ended", 1, why)
            _log.error(
                "the process %d that answers reads ended (%s; answers broken off: %d); the next question starts one",
                child.pid,
                why.replace("_", " "),
                len(waiting),
            )

    def _take(self, child: Child, message: Any) -> None:
        match message:
            case ("send", number, messages):
                self._backoff.succeeded()
                if number in self._answers:
                    self._answers[number].put_nowait(messages)
            case ("end", number):
                if (answer := self._answers.pop(number, None)) is not None:
                    answer.put_nowait([])
            case ("work", number, name, arguments):
                task = asyncio.create_task(self._tell(child, number, name, arguments))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case ("raised", raised):
                ERRORS.add(raised)

    async def _next(self, answer: asyncio.Queue[list[Message] | None], child: Child) -> list[Message] | None:
        while True:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    return await answer.get()
            except TimeoutError:
                if time.monotonic() - self._heard > _PATIENCE_S:
                    child.kill()

    async def _tell(self, child: Child, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        """Sends the process what only the collector knows, in answer to its question."""
        ask = getattr(self._work, name)
        try:
            if ask is None:
                told = None
            elif inspect.iscoroutinefunction(ask):
                told = await ask(*arguments)
            else:
                told = await asyncio.to_thread(ask, *arguments)
        except sqlite3.Error as error:
            told = sqlite3.OperationalError(str(error))
        except Exception as error:  # noqa: BLE001 - the other process has to hear that there is no answer
            told = RuntimeError(f"{type(error).__name__}: {error}")
        child.send(wire.body(("told", number, told)))


def _told(scope: Scope) -> MutableMapping[str, Any]:
    """Returns the parts of a request that the process is sent: not the client's address, nor its token."""
    headers = [each for each in scope["headers"] if each[0] not in (b"authorization", b"cookie")]
    return {**{key: scope[key] for key in _TOLD if key in scope}, "headers": headers}


def _not_there(seconds: float) -> Any:
    return refusal(503, _WHY, {"retry-after": str(max(1, math.ceil(seconds)))})


async def _gone(receive: Receive) -> None:
    """Returns when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
