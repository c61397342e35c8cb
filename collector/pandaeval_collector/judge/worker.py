"""The process that talks to models: ``python -m pandaeval_collector.judge.worker``.

It is the only one that imports litellm (4 s, 165 MB, and much code that we did not write) and it holds nothing that
matters: calls come in as frames of JSON on standard input, answers leave likewise on standard output, in any order.
The first frame in is the set-up, the first one out says that it is ready. Before each try, retries and fallbacks
included, ``{"id": 1, "attempt": MODEL, "answered": false, "max_tokens": 900}`` goes out and ``{"go": 1}`` is waited
for, so that the collector can hold every request to its limits and its budget; ``answered`` says whether the try before
was, with something that nobody could read; ``max_tokens`` how long the answer may get. ``{"drop": 1}`` ends a call that
nobody waits for.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from pandaeval_collector.base.runtime.child import Parent
from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.untrusted.foreign import explained, secrets_in
from pandaeval_collector.judge.provider import ProviderCaller

_NICE = 10
"""The process mostly waits for models, so ingest goes first."""


class CallServer:
    """Holds the calls under way in this process."""

    def __init__(self, caller: ProviderCaller, parent: Parent) -> None:
        self._caller, self._parent = caller, parent
        self._running: dict[int, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Event] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Takes in a message: a new call, a permission for a try, or the end of a call."""
        if "go" in message:
            self._asked[message["go"]].set()
        elif "drop" in message:
            if (task := self._running.get(message["drop"])) is not None:
                task.cancel()
        else:
            number = message["id"]
            self._running[number] = asyncio.create_task(self._answer(number, message["call"]))

    async def _answer(self, number: int, call: dict[str, Any]) -> None:
        asked = self._asked[number] = asyncio.Event()

        async def allowed(model: str, answered: bool, max_tokens: int) -> None:
            asked.clear()
            _tell(self._parent, {"id": number, "attempt": model, "answered": answered, "max_tokens": max_tokens})
            await asked.wait()

        try:
            _tell(self._parent, {"id": number, **await self._caller.answer(call, allowed)})
        finally:
            del self._asked[number], self._running[number]


async def _serve(caller: ProviderCaller, parent: Parent) -> None:
    await caller.warm_up()
    _tell(parent, {"ready": True, "known": caller.known()})
    loop, server = asyncio.get_running_loop(), CallServer(caller, parent)
    parent.listen(lambda body: loop.call_soon_threadsafe(server.take, json.loads(body)))
    await asyncio.Event().wait()  # the process ends with its input, whatever a provider's client still does


def _tell(parent: Parent, message: dict[str, Any]) -> None:
    parent.send(json.dumps(message).encode())


def main() -> None:
    """Serves until standard input ends."""
    parent = Parent(nice=_NICE)
    expect_imports()
    first = parent.receive()
    if first is None:
        return
    setup: dict[str, Any] = json.loads(first)
    try:
        caller = ProviderCaller(setup)
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no worker
        message = explained(error, secrets_in(os.environ, setup.get("api_key_env")))
        _tell(parent, {"ready": False, "message": message})
        return
    asyncio.run(_serve(caller, parent))


if __name__ == "__main__":
    main()
