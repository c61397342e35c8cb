"""The process that answers what is read of the API: ``python -m pandaeval_collector.show.api.read_worker``.

It reads the collector's store and writes nothing there, so it may be killed at any time. It speaks as
:mod:`pandaeval_collector.show.api.read_process` says. When standard input ends, it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any, NoReturn

from starlette.types import ASGIApp, Message, Scope

from pandaeval_collector.base.runtime.child import Parent, go_first
from pandaeval_collector.base.runtime.garbage import expect_imports, give_memory_back
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.runs import wire
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.bounded_answers import BoundedAnswers
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import ReadSetup, Work
from pandaeval_collector.store.finding import Finder
from pandaeval_otel.base.component_errors import ERRORS

_log = logging.getLogger(__name__)

_NICE = 5
"""The process runs at a lower priority than the line."""
_TOLD_S = 60.0


class ReadServer:
    """Answers the requests that the collector passes to this process. On one event loop."""

    def __init__(self, setup: ReadSetup, parent: Parent) -> None:
        self._parent, self._loop = parent, asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._told: dict[int, asyncio.Future[Any]] = {}
        self._answers: dict[int, tuple[asyncio.Task[None], asyncio.Semaphore]] = {}
        """The task of each request, by its number, and the semaphore that lets it send a piece of its answer."""
        runs = _not_here if setup.has_runs else None
        api = api_app(Reads(Finder(setup.store)), self._work(setup), setup.version, runs)
        self._app: ASGIApp = BoundedAnswers().bound(api)

    def take(self, message: Any) -> None:
        """Handles one message of the collector."""
        match message:
            case ("ask", number, scope):
                leave = asyncio.Semaphore(1)
                self._answers[number] = self._loop.create_task(self._answer(number, scope, leave)), leave
            case ("more", number) if number in self._answers:
                self._answers[number][1].release()
            case ("drop", number) if number in self._answers:
                self._answers[number][0].cancel()
            case ("told", number, told):
                self._told.pop(number).set_result(told)

    async def _answer(self, number: int, scope: Scope, leave: asyncio.Semaphore) -> None:
        held: list[Message] = []

        async def send(message: Message) -> None:
            held.append(message)
            if message["type"] == "http.response.body":  # with the head, so that there is none without a body
                await leave.acquire()
                self._write("send", number, held)
                held.clear()

        try:
            await self._app(scope, _nothing_more(), send)
        except Exception:  # noqa: BLE001 - Starlette has answered 500, and whoever raised is in the log
            _log.exception("%s %s could not be answered", scope["method"], scope["path"])
        finally:
            del self._answers[number]
            self._write("end", number)
            if raised := ERRORS.take():
                self._write("raised", raised)

    def _write(self, *message: Any) -> None:
        self._parent.send(wire.body(message))

    def _work(self, setup: ReadSetup) -> Work:
        """Returns the collector's work as seen from here: what this process cannot know, it asks for."""

        def asked(name: str) -> Any:
            return lambda: asyncio.run_coroutine_threadsafe(self._ask(name), self._loop).result(_TOLD_S)

        return Work(
            jobs=asked("jobs"),
            spent=asked("spent"),
            component_errors=asked("component_errors"),
            session_now=lambda id_: self._ask("session_now", id_),
            annotate=_not_here,
            drawing=_not_here,
            judge=setup.judge,
            daily_usd=setup.daily_usd,
            metrics=[(each, setup.thresholds[key]) for key, each in registry(setup.modules).items()],
            modules=setup.modules,
            page=setup.page,
        )

    async def _ask(self, name: str, *arguments: Any) -> Any:
        """Asks the collector, and returns its answer. Raises the error that the collector met."""
        number = next(self._numbers)
        told = self._told[number] = self._loop.create_future()
        self._write("work", number, name, arguments)
        found = await told
        if isinstance(found, Exception):
            raise found
        return found


def _not_here(*_: Any) -> NoReturn:
    raise AssertionError("what changes something is never put to the process that reads")


def _nothing_more() -> Any:
    """Returns a ``receive`` that gives the empty body of a request, and then waits until the answer is dropped."""
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.Future()

    return receive


async def _serve(setup: ReadSetup, parent: Parent) -> None:
    loop, server = asyncio.get_running_loop(), ReadServer(setup, parent)
    parent.send()
    parent.listen(lambda frame: loop.call_soon_threadsafe(server.take, wire.unpacked(frame)))
    await asyncio.Event().wait()  # the process ends with its input


def main() -> None:
    """Serves until standard input ends."""
    go_first()
    parent = Parent(nice=_NICE)
    expect_imports()
    give_memory_back()
    first = parent.receive()
    if first is None:
        return
    setup: ReadSetup = wire.unpacked(first)
    set_up(setup.log_level)
    ERRORS.hand_over()
    try:
        asyncio.run(_serve(setup, parent))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no process
        parent.send(f"{type(error).__name__}: {error}"[:500].encode(errors="replace"))


if __name__ == "__main__":
    main()
