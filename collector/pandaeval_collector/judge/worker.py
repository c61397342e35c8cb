"""The process that talks to models: ``python -m pandaeval_collector.judge.worker``.

It is the only one that imports litellm (4 s, 165 MB, and much code that we did not write) and it holds nothing that
matters: calls come in as JSON lines on standard input, answers leave as JSON lines on standard output, in any order.
The first line in is the set-up, the first line out says that it is ready. Before each try, retries and fallbacks
included, ``{"id": 1, "attempt": MODEL, "answered": false, "max_tokens": 900}`` goes out and ``{"go": 1}`` is waited
for, so that the collector can hold every request to its limits and its budget; ``answered`` says whether the try before
was, with something that nobody could read; ``max_tokens`` how long the answer may get. ``{"drop": 1}`` ends a call that
nobody waits for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.untrusted.foreign import explained, secrets_in
from pandaeval_collector.judge.provider import ProviderCaller

_NICE = 10
"""Whoever waits seconds for a model can let ingest go first."""


class Lines:
    """Standard input and output as JSON lines. Whatever a library prints goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def read(self) -> dict[str, Any] | None:
        line = sys.stdin.buffer.readline()
        return json.loads(line) if line else None

    def write(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()


class CallServer:
    """The calls under way in this process."""

    def __init__(self, caller: ProviderCaller, lines: Lines) -> None:
        self._caller, self._lines = caller, lines
        self._running: dict[int, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Event] = {}

    def take(self, message: dict[str, Any]) -> None:
        """A new call, a permission for one, or the end of one."""
        if "go" in message:
            self._asked[message["go"]].set()
        elif "drop" in message:
            if (task := self._running.get(message["drop"])) is not None:
                task.cancel()
        else:
            number = message["id"]
            self._running[number] = asyncio.create_task(self._answer(number, message["call"]))

    async def _answer(self, number: int, call: dict[str, Any]) -> None:
        with self._held(number) as asked:

            async def allowed(model: str, answered: bool, max_tokens: int) -> None:
                asked.clear()
                attempt = {"attempt": model, "answered": answered, "max_tokens": max_tokens}
                self._lines.write({"id": number, **attempt})
                await asked.wait()

            self._lines.write({"id": number, **await self._caller.answer(call, allowed)})

    @contextmanager
    def _held(self, number: int) -> Iterator[asyncio.Event]:
        self._asked[number] = asyncio.Event()
        try:
            yield self._asked[number]
        finally:
            del self._asked[number], self._running[number]


async def _serve(caller: ProviderCaller, lines: Lines) -> None:
    await caller.warm_up()
    lines.write({"ready": True, "known": caller.known()})
    loop, server = asyncio.get_running_loop(), CallServer(caller, lines)
    inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def read() -> None:
        while (message := lines.read()) is not None:
            loop.call_soon_threadsafe(inbox.put_nowait, message)
        loop.call_soon_threadsafe(inbox.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (message := await inbox.get()) is not None:
        server.take(message)
    os._exit(0)  # nothing that a provider's client still does may keep a worker that nobody listens to


def main() -> None:
    """Serve until standard input ends."""
    if hasattr(os, "nice"):
        os.nice(_NICE)
    expect_imports()
    lines = Lines()
    setup = lines.read()
    if setup is None:
        return
    try:
        caller = ProviderCaller(setup)
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no worker
        lines.write({"ready": False, "message": explained(error, secrets_in(os.environ, setup.get("api_key_env")))})
        return
    asyncio.run(_serve(caller, lines))


if __name__ == "__main__":
    main()
