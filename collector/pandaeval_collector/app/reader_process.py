"""The front's side of the reader process.

The front sends scope and body, receives ASGI messages, and does all writes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.base.runtime.peer import ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.show import MCP
from pandaeval_collector.show.api.refusals import refusal
from pandaeval_collector.show.api.writing import READING
from pandaeval_collector.store import Store
from pandaeval_collector.store.access import READER_TABLES, writing

MODULE = "pandaeval_collector.app.reader_main"
_PATIENCE_S, _LONG_S = 60.0, 660.0
"""Seconds without an answer before a process is killed: for reads, and for longer work such as a run's estimate."""
_TOLD = ("type", "http_version", "method", "scheme", "path", "raw_path", "query_string")
_SLOW = refusal(503, "no answer in time: try again, or request less", {"retry-after": "10"})
_WHY = "the reader process is restarting: try again in a moment"


class ReaderProcess:
    """ASGI application that forwards to the process. On one event loop."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        store: Store,
        decide: Mapping[str, Callable[..., Any]],
        judge: Calls | None = None,
    ) -> None:
        """``decide``: decisions that the process may request, by name."""
        self._store, self._posts = store, config.exporters.webhook.url_env is not None

        async def component_errors(_: Any) -> Mapping[tuple[str, str], int]:
            return telemetry.component_errors()

        async def sinks_down(_: Any) -> list[str]:
            return telemetry.sinks_down()

        handlers: dict[str, Callable[..., Any]] = {
            "write": writing(store, READER_TABLES),
            **decide,
            "component_errors": component_errors,
            "sinks_down": sinks_down,
            "measured": partial(telemetry.take_in, "reader"),
        }
        if judge is not None:
            handlers["complete"] = lambda _, call: judge.ask("complete", call)
            handlers["prices"] = lambda _: judge.ask("prices")
        count, setup = partial(telemetry.add, "pandaeval.readers"), (config, store.clock)
        self.calls = Calls(
            "the reader", MODULE, setup, environ, count=count, handlers=handlers, keep=True, backoff=Backoff(1.0)
        )

    def reached_at(self, address: str) -> None:
        """Take the collector's address with its real port, before the process starts."""
        config, clock = self.calls.setup
        server = config.server.model_copy(update={"http": address})
        self.calls.setup = config.model_copy(update={"server": server}), clock

    async def look(self) -> None:
        """Start the process for the webhook, labels, runs or schedules. Raises ``ChildStartError``."""
        if self.calls.pid is None and await asyncio.to_thread(self._has_work):
            await self.calls.start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.calls.pid is None and self.calls.pause:
            await _not_there(self.calls.pause)(scope, receive, send)
            return
        begun, is_read = False, scope["method"] in READING
        body = b"" if is_read else (await receive())["body"]  # whole: see OwnWrites

        async def pass_on(messages: Sequence[Message]) -> None:
            nonlocal begun
            begun = True
            for message in messages:
                await send(message)

        is_short = is_read or scope["path"] == MCP  # whose tools only read
        patience = _PATIENCE_S if is_short else _LONG_S
        asking = asyncio.ensure_future(self.calls.ask("read", _told(scope), body, patience=patience, on_piece=pass_on))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            # What changes something is not broken off half-way.
            waiting = {asking, gone} if is_read else {asking}
            limit = patience if is_short else None
            await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if begun:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                asking.result()
            elif not begun and not gone.done():
                await _SLOW(scope, receive, send)
        except (ChildStartError, ChildEndedError):
            if not begun:
                await _not_there(max(1.0, self.calls.pause))(scope, receive, send)
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.gather(asking, gone, return_exceptions=True)

    def _has_work(self) -> bool:
        store = self._store
        if self._posts:
            return True
        return store.people.has_labels() or store.runs.next() is not None or bool(store.schedules.all())


def _told(scope: Scope) -> dict[str, Any]:
    headers = [each for each in scope["headers"] if each[0] not in (b"authorization", b"cookie")]
    return {**{key: scope[key] for key in _TOLD if key in scope}, "root_path": "", "headers": headers}


def _not_there(seconds: float) -> Any:
    return refusal(503, _WHY, {"retry-after": str(max(1, math.ceil(seconds)))})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
