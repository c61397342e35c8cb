"""The process that answers what is read of the API: ``python -m pandaeval_collector.show.api.read_worker``.

It reads the collector's store and writes nothing there, so it may be killed at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from starlette.types import Message, Scope

from pandaeval_collector.base.runtime.calls import Handlers, Peer
from pandaeval_collector.base.runtime.garbage import expect_imports, give_memory_back
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.bounded_answers import BoundedAnswers
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import ReadSetup, Work
from pandaeval_collector.store.finding import Finder

_log = logging.getLogger(__name__)

_NICE = 5
"""The process runs at a lower priority than the line."""
_TOLD_S = 60.0


async def _open(setup: ReadSetup, collector: Peer) -> Handlers:
    runs = _not_here if setup.has_runs else None
    api = api_app(Reads(Finder(setup.store)), _work(setup, collector), setup.version, runs)
    app = BoundedAnswers().bound(api)

    async def read(piece: Callable[[list[Message]], Awaitable[None]], scope: Scope) -> None:
        held: list[Message] = []

        async def send(message: Message) -> None:
            held.append(message)
            if message["type"] == "http.response.body":  # with the head, so that there is none without a body
                messages = held.copy()
                held.clear()
                await piece(messages)

        try:
            await app(scope, _nothing_more(), send)
        except Exception:  # noqa: BLE001 - Starlette has answered 500, and whoever raised is in the log
            _log.exception("%s %s could not be answered", scope["method"], scope["path"])

    return {"read": read}


def _work(setup: ReadSetup, collector: Peer) -> Work:
    """Returns the collector's work as seen from here: what this process cannot know, it asks for."""
    loop = asyncio.get_running_loop()

    def asked(name: str) -> Any:
        return lambda: asyncio.run_coroutine_threadsafe(collector.ask(name), loop).result(_TOLD_S)

    return Work(
        jobs=asked("jobs"),
        spent=asked("spent"),
        component_errors=asked("component_errors"),
        session_now=lambda id_: collector.ask("session_now", id_),
        annotate=_not_here,
        drawing=_not_here,
        judge=setup.judge,
        daily_usd=setup.daily_usd,
        metrics=[(each, setup.thresholds[key]) for key, each in registry(setup.modules).items()],
        modules=setup.modules,
        page=setup.page,
    )


def _not_here(*_: Any) -> NoReturn:
    raise AssertionError("what changes something is never put to the process that reads")


def _nothing_more() -> Any:
    """Returns a ``receive`` that gives the empty body of a request, and then waits until the answer is dropped."""
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.Future()

    return receive


if __name__ == "__main__":
    expect_imports()
    give_memory_back()
    serve_together(_open, nice=_NICE)
