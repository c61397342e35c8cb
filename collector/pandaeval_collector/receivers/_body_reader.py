"""Reads a few gRPC messages at a time; HTTP/2 flow control bounds the others.

Methods are streams, because gRPC reads unary messages without a limit.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

import grpc

from pandaeval_collector.receivers import Malformed, Overloaded, Refusal, TooSlow

if TYPE_CHECKING:
    _Context = grpc.aio.ServicerContext[bytes, bytes]

MAX_WAITING = 20_000
_TOGETHER_BYTES, _FEWEST, _MOST = 32 << 20, 2, 64
_LARGE_BYTES = 1 << 20
_LOOK_S = 0.05
_REMEMBERED = 1_000


class BodyReader:
    """Reads at most ``at_once`` messages on an event loop.

    A message has ``timeout_s`` to arrive, or ``patience_s`` if other calls wait. Connections take turns; stalled or
    large ones come last.
    """

    def __init__(self, at_once: int, *, timeout_s: float = 30.0, patience_s: float = 0.25) -> None:
        self._free = self.at_once = at_once
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._begun: dict[asyncio.Task[Any], tuple[float, str]] = {}
        self._evicted: dict[asyncio.Task[Any], tuple[type[Refusal], str]] = {}
        self._queue = _Queue()
        self._look_at: asyncio.TimerHandle | None = None

    @classmethod
    def of_messages(cls, max_bytes: int) -> BodyReader:
        """Make a reader for 32 MiB of messages, at least two."""
        return cls(min(_MOST, max(_FEWEST, _TOGETHER_BYTES // max_bytes)))

    async def read(self, context: _Context) -> bytes:
        """Return a call's message. Raises :class:`TooSlow`, :class:`Overloaded` or :class:`Malformed`."""
        if self._free:
            self._free -= 1
        elif self._queue.waiting >= MAX_WAITING:
            raise Overloaded(f"{MAX_WAITING} calls wait to be read already")
        else:
            turn = asyncio.get_running_loop().create_future()
            self._queue.put(context.peer(), turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._begun[task] = loop.time(), context.peer()
        if self._look_at is None:
            self._look_at = loop.call_later(_LOOK_S, self._look)
        try:
            message: Any = await context.read()
            if isinstance(message, bytes) and len(message) > _LARGE_BYTES:
                self._queue.put_last(context.peer())
        except asyncio.CancelledError:
            evicted = self._evicted.pop(task, None)
            if evicted is None:
                raise
            task.uncancel()
            # The error is made here: a variable with it would keep this frame and the call until a garbage collection.
            kind, why = evicted
            raise kind(why) from None
        finally:
            del self._begun[task]
            self._pass_on()
        if not isinstance(message, bytes):  # gRPC's mark of the end of the stream
            raise Malformed("the call ended before its message did")
        return message

    def _pass_on(self) -> None:
        while (next_one := self._queue.take()) is not None:
            if not next_one.done():
                next_one.set_result(None)
                return
        self._free += 1

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now, wanted = loop.time(), self._queue.waiting
        for task, (begun, peer) in self._begun.items():
            took = now - begun
            if took > self._timeout_s:
                self._evict(task, peer, TooSlow, f"the message did not arrive within {self._timeout_s:g} s")
            elif wanted and took > self._patience_s:
                self._evict(task, peer, Overloaded, "the message comes slowly, and others wait to be read")
            else:
                break  # all others began later
            wanted = max(0, wanted - 1)
        self._look_at = loop.call_later(_LOOK_S, self._look) if self._begun else None

    def _evict(self, task: asyncio.Task[Any], peer: str, kind: type[Refusal], why: str) -> None:
        if task not in self._evicted:
            self._evicted[task] = kind, why
            self._queue.put_last(peer)
            task.cancel()


class _Queue:
    def __init__(self) -> None:
        self._ordinary: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._last: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._slow: OrderedDict[str, None] = OrderedDict()
        self.waiting = 0

    def put(self, peer: str, call: asyncio.Future[None]) -> None:
        queue = self._last if peer in self._slow else self._ordinary
        queue.setdefault(peer, deque()).append(call)
        self.waiting += 1

    def take(self) -> asyncio.Future[None] | None:
        queue = self._ordinary or self._last
        if not queue:
            return None
        peer, calls = queue.popitem(last=False)
        call = calls.popleft()
        if calls:
            queue[peer] = calls
        self.waiting -= 1
        return call

    def put_last(self, peer: str) -> None:
        self._slow[peer] = None
        self._slow.move_to_end(peer)
        if len(self._slow) > _REMEMBERED:
            self._slow.popitem(last=False)
        if (calls := self._ordinary.pop(peer, None)) is not None:
            self._last.setdefault(peer, deque()).extend(calls)
