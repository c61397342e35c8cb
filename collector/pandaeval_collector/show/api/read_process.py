"""Answers what is read of the API in a process of its own: to render a trace of thirteen megabytes takes a second, in
which the interpreter of the collector would take no span in.

The process is started by the first question. It answers a request's scope by its ASGI messages, a piece of a body at a
time, and asks for what only the collector can tell (:class:`Work`).
"""

from __future__ import annotations

import asyncio
import inspect
import math
import sqlite3
from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pandaeval_collector.base.runtime.backoff import Backoff
from pandaeval_collector.base.runtime.calls import Calls, ChildEndedError
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.show.api.refusals import refusal
from pandaeval_collector.show.api.work import ReadSetup, Work

MODULE = "pandaeval_collector.show.api.read_worker"
_WHAT = "the process that answers what is read (server.read_process)"
_PATIENCE_S = 60.0
"""A process that is asked and says nothing for so long hangs, and is ended."""
_ASKED = ("jobs", "spent", "component_errors", "session_now")
_TOLD = ("type", "http_version", "method", "scheme", "path", "raw_path", "root_path", "app_root_path", "query_string")
_WHY = "the process that answers what is read is not there (it ended, and is started again): come back in a moment"


class ReadProcess:
    """Passes requests to the process, as an ASGI application. On one event loop."""

    def __init__(self, setup: ReadSetup, work: Work, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        count, handlers = partial(telemetry.add, "pandaeval.readers"), {n: partial(_tell, work, n) for n in _ASKED}
        self.calls = Calls(_WHAT, MODULE, setup, environ, count=count, handlers=handlers, backoff=Backoff(1.0))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.calls.pid is None and self.calls.pause:
            await _not_there(self.calls.pause)(scope, receive, send)
            return
        begun = False

        async def pass_on(messages: Sequence[Message]) -> None:
            nonlocal begun
            begun = True
            for message in messages:
                await send(message)

        asking = asyncio.ensure_future(self.calls.ask("read", _told(scope), patience=_PATIENCE_S, on_piece=pass_on))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                asking.result()
        except (ChildStartError, ChildEndedError):
            if not begun:
                await _not_there(max(1.0, self.calls.pause))(scope, receive, send)
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.gather(asking, gone, return_exceptions=True)


async def _tell(work: Work, name: str, _: Any, *arguments: Any) -> Any:
    """Returns what only the collector knows, in answer to the process's question."""
    ask = getattr(work, name)
    if ask is None:
        return None
    try:
        return await (ask(*arguments) if inspect.iscoroutinefunction(ask) else asyncio.to_thread(ask, *arguments))
    except sqlite3.Error as error:
        raise sqlite3.OperationalError(str(error)) from error


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
