"""The protocol between a collector and its child processes.

Both ends send frames (:mod:`pandaeval_collector.base.runtime.child`) that begin with their kind:

- ``ask, n, name, arguments``: a request, ended by ``done, n, value`` or ``failed, n, error``.
- ``piece, n, value``: part of an answer, acknowledged by ``more, n, value``.
- ``drop, n``: cancels the request; ``done, n`` confirms.
- ``tell, name, arguments``: a notice. ``raised, errors``: component errors.

A child receives its setup first. It answers with an empty frame if ready, else the error.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import pickle
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pandaeval_collector.base.runtime.child import Child
from pandaeval_otel.base.component_errors import ERRORS, RaisedErrors

EDITION = Path(__file__).stat().st_mtime_ns
"""Which installation this process runs. A child of another one, put in place of ours since we started, would answer in
words that we do not know."""

_LEAST_WAIT_S = 0.1

OnPiece = Callable[[Any], Awaitable[Any]]
Handlers = Mapping[str, Callable[..., Any]]
"""A process's handlers, by name. A request awaits ``handler(piece, *arguments)``; ``piece`` sends part of the answer
and returns the caller's response. A notice calls ``handler(*arguments)``.
"""


class RemoteError(Exception):
    """An unserialisable error of the other process. The text begins with its kind."""


class ChildEndedError(Exception):
    """A child ended before it answered.

    ``over_it``: perhaps at this request. ``why``: ``hung``, ``signal_9`` or ``exit_1``, for example.
    """

    def __init__(self, what: str, pid: int, why: str, over_it: bool) -> None:
        super().__init__(f"{what} ended before it answered (process {pid}, {why.replace('_', ' ')})")
        self.pid, self.why, self.over_it, self.hung = pid, why, over_it, why == "hung"


class Codec:
    """Serialises any value and error. Only for children that run our code alone."""

    def pack(self, message: Any) -> bytes:
        return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)

    def unpack(self, body: bytes) -> Any:
        return pickle.loads(body)  # noqa: S301 - from our parent or our child

    def error(self, error: Exception) -> Exception | str:
        """Return an error for the other end to raise, with its traceback, else a text."""
        error.add_note("".join(traceback.format_exception(error)))
        try:
            if type(self.unpack(self.pack(error))) is type(error):
                return error
        except Exception:  # noqa: BLE001, S110 - its class can raise any exception
            pass
        return f"{type(error).__name__}: {error}"


class JsonCodec(Codec):
    """Serialises JSON values, and errors as texts. For children that run third-party code."""

    def pack(self, message: Any) -> bytes:
        return json.dumps(message).encode()

    def unpack(self, body: bytes) -> Any:
        return json.loads(body)

    def error(self, error: Exception) -> str:
        return f"{type(error).__name__}: {error}"


PICKLED = Codec()


@dataclass(slots=True, eq=False)
class _Asked:
    """A pending request. ``patience``: most silent seconds. ``is_theirs``: the other end is next."""

    patience: float
    inbox: asyncio.Queue[tuple[str, Any]] = field(default_factory=asyncio.Queue)
    is_theirs: bool = True


class Peer:
    """An end of the pipes, for requests in both directions. For a single event loop."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        codec: Codec,
        handlers: Handlers,
        relay: Callable[[], object] = lambda: None,
        in_turn: bool = False,
        on_hang: Callable[[], None] = lambda: None,
        child: Child | None = None,
    ) -> None:
        """Set up one end of the pipes.

        ``relay``: called before each answer and notice. ``in_turn``: the other end handles one request at a time.
        ``on_hang``: called when a request exceeds its limit. ``child``: the other end, if its CPU time counts.
        """
        self._send, self._codec, self.handlers, self._relay = send, codec, handlers, relay
        self._in_turn, self._on_hang, self._child = in_turn, on_hang, child
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Asked] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._pieces: dict[int, asyncio.Future[Any]] = {}
        self._limit: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> int:
        return len(self._asked)

    async def ask(self, name: str, *arguments: Any, patience: float = math.inf, on_piece: OnPiece | None = None) -> Any:
        """Return the other end's answer, or raise its error.

        ``on_piece`` receives each part; its return value is sent back.
        """
        number = next(self._numbers)
        body = self._codec.pack(("ask", number, name, arguments))
        asked = self._asked[number] = _Asked(patience)
        try:
            self._send(body)
            self._watch()
            while True:
                kind, value = await asked.inbox.get()
                if kind == "done":
                    return value
                if kind == "failed":
                    raise value if isinstance(value, Exception) else RemoteError(value)
                assert on_piece is not None, name
                taken = await on_piece(value)
                asked.is_theirs = True
                self._write("more", number, taken)
                self._watch()
        finally:
            if not self._in_turn and number in self._asked:  # until the other side confirms, it may hang in this call
                asked.is_theirs = True
                self._write("drop", number)
                self._watch()

    def tell(self, name: str, *arguments: Any) -> None:
        self._relay()  # raises the error of an answer without a waiting caller
        self._write("tell", name, arguments)

    def take(self, message: Any) -> None:
        match message:
            case ["ask", number, name, arguments]:
                self._answering[number] = asyncio.create_task(self._answer(number, name, arguments))
                self._answering[number].add_done_callback(partial(self._confirm, number))
            case ["more", number, value] if number in self._pieces:
                self._pieces.pop(number).set_result(value)
            case ["drop", number] if number in self._answering:
                self._answering[number].cancel()
            case ["tell", name, arguments]:
                self.handlers[name](*arguments)
            case ["raised", raised]:
                ERRORS.add(RaisedErrors(*each) for each in raised)
            case ["piece" | "done" | "failed" as kind, number, value] if number in self._asked:
                asked = self._asked[number]
                asked.is_theirs = False
                asked.inbox.put_nowait((kind, value))
                if kind != "piece":
                    del self._asked[number]
        self._watch(anew=True)

    def end(self, error: Callable[[bool], Exception]) -> None:
        asked, self._asked = self._asked, {}
        for place, each in enumerate(asked.values()):
            each.inbox.put_nowait(("failed", error(each.is_theirs and not (place and self._in_turn))))
        for task in self._answering.values():
            task.cancel()
        self._watch(anew=True)

    def _write(self, *message: Any) -> None:
        self._send(self._codec.pack(message))

    async def _answer(self, number: int, name: str, arguments: Any) -> None:
        async def piece(value: Any) -> Any:
            more = self._pieces[number] = asyncio.get_running_loop().create_future()
            self._write("piece", number, value)
            return await more

        try:
            body = self._codec.pack(("done", number, await self.handlers[name](piece, *arguments)))
        except Exception as error:  # noqa: BLE001 - the caller handles the error
            body = self._codec.pack(("failed", number, self._codec.error(error)))
        self._relay()
        self._send(body)

    def _confirm(self, number: int, answering: asyncio.Task[None]) -> None:
        del self._answering[number]
        self._pieces.pop(number, None)
        if answering.cancelled():
            self._write("done", number, None)

    def _watch(self, anew: bool = False) -> None:
        limits = [each.patience for each in self._asked.values() if each.is_theirs]
        patience = min(limits[: 1 if self._in_turn else None], default=math.inf)
        if self._limit is not None:
            if not anew and self._limit.when() <= asyncio.get_running_loop().time() + patience:
                return
            self._limit.cancel()
            self._limit = None
        if patience < math.inf:
            self._end_after(patience, 0.0 if self._child is None else self._child.cpu_s + patience)

    def _end_after(self, seconds: float, most_cpu_s: float) -> None:
        self._limit = asyncio.get_running_loop().call_later(seconds, self._end_hanging, most_cpu_s)

    def _end_hanging(self, most_cpu_s: float) -> None:
        if self._child is not None and self._child.is_busy_below(most_cpu_s):
            self._end_after(max(_LEAST_WAIT_S, most_cpu_s - self._child.cpu_s), most_cpu_s)
        else:
            self._on_hang()
