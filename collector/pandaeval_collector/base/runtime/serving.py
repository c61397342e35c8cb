"""The stateless child side of :mod:`pandaeval_collector.base.runtime.peer`."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import Awaitable, Callable
from typing import Any

from pandaeval_collector.base.runtime.child import Parent
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.base.runtime.peer import EDITION, PICKLED, Codec, Handlers, Peer
from pandaeval_otel.base.component_errors import ERRORS

Tell = Callable[..., None]
"""Sends the parent a notice: a name, and the arguments of its handler there."""


class OtherEditionError(RuntimeError):
    """The program on disk changed since this process started."""


def serve(open_: Callable[[Any, Tell], Handlers]) -> None:
    """Serve requests sequentially. ``open_``: returns the handlers, or raises the start error."""
    parent, codec, requests = Parent(), PICKLED, queue.SimpleQueue[Any]()

    def tell(name: str, *arguments: Any) -> None:
        parent.send(codec.pack(("tell", name, arguments)))

    try:
        handlers = open_(_setup(parent, codec), tell)
    except Exception as error:  # noqa: BLE001 - the parent gets the error
        return _tell_fault(parent, error)
    parent.send()
    parent.listen(lambda frame: requests.put(codec.unpack(frame)))  # reads ahead
    while True:
        _, number, name, arguments = requests.get()
        try:
            body = codec.pack(("done", number, handlers[name](*arguments)))
        except Exception as error:  # noqa: BLE001 - the parent handles the error
            body = codec.pack(("failed", number, codec.error(error)))
        _relay_errors(parent, codec)
        parent.send(body)


def serve_together(open_: Callable[[Any, Peer], Awaitable[Handlers]], *, nice: int = 0, codec: Codec = PICKLED) -> None:
    """Serve requests concurrently on an event loop.

    ``open_``: returns the handlers, or raises the start error. ``nice``: nice value of the process.
    """
    parent = Parent(nice=nice)
    asyncio.run(_serve(open_, parent, codec))


async def _serve(open_: Callable[[Any, Peer], Awaitable[Handlers]], parent: Parent, codec: Codec) -> None:
    loop, peer = asyncio.get_running_loop(), Peer(parent.send, codec, {}, lambda: _relay_errors(parent, codec))
    try:
        peer.handlers = await open_(_setup(parent, codec), peer)
    except Exception as error:  # noqa: BLE001 - the parent gets the error
        return _tell_fault(parent, error)
    parent.send()
    parent.listen(lambda frame: loop.call_soon_threadsafe(peer.take, codec.unpack(frame)))
    await asyncio.Event().wait()  # the process ends with its input


def _setup(parent: Parent, codec: Codec) -> Any:
    first = parent.receive()
    if first is None:
        os._exit(0)
    edition, log_level, setup = codec.unpack(first)
    if edition != EDITION:
        raise OtherEditionError("another version was installed since the collector started; restart the collector")
    set_up(log_level)
    ERRORS.hand_over()
    return setup


def _tell_fault(parent: Parent, error: Exception) -> None:
    parent.send(f"{type(error).__name__}: {error}"[:500].encode(errors="replace"))


def _relay_errors(parent: Parent, codec: Codec) -> None:
    if raised := ERRORS.take():
        parent.send(codec.pack(("raised", raised)))
