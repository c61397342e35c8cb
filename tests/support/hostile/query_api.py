"""A loopback trace store with hostile answers: too large, endless or repeated."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

Answer = Callable[[str], Iterable[bytes]]
"""Returns the raw pieces of an answer to a path."""
_PIECE = 64 * 1024


class HostileStore:
    """The store as a context manager. ``asked``: requested paths."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[str] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._listen)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, IndexError):
            connection.settimeout(20)
            path = connection.recv(65_536).split()[1].decode()
            self.asked.append(path)
            for piece in self._answer(path):
                connection.sendall(piece)
                if self._ended.is_set():
                    return


def whole(body: bytes, encoding: str = "") -> Iterator[bytes]:
    """Return a JSON answer."""
    yield _head(encoding, f"content-length: {len(body)}\r\n")
    for at in range(0, len(body), _PIECE):
        yield body[at : at + _PIECE]


def dripping(head: bool, pause_s: float) -> Iterator[bytes]:
    """Send a byte at a time, in head or body."""
    yield b"HTTP/1.1 200 OK\r\nx: " if head else _head("", "")
    while True:
        time.sleep(pause_s)
        yield b" "


def _head(encoding: str, more: str) -> bytes:
    encoded = f"content-encoding: {encoding}\r\n" if encoding else ""
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n{encoded}{more}\r\n".encode()


def empty_objects(size: int) -> bytes:
    """Fill every expected list with ``{}`` up to ``size``."""
    many = b"{}," * (size // 3) + b"{}"
    return b'{"services":["desk"],"data":[%b],"result":{"resourceSpans":[%b]},"traces":[%b]}' % (
        many,
        many[:2],
        many[:2],
    )


def bomb(size: int, layers: int = 2) -> bytes:
    """Return blanks, gzipped twice."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(bytes([32]) * _PIECE) for _ in range(size // _PIECE)]
    found = b"".join([*pieces, packer.flush()])
    return found if layers == 1 else gzip.compress(found)


def flood(size: int) -> Iterator[bytes]:
    """Fill the trace lists of Jaeger and Tempo with ``{}``."""
    yield _head("", "") + b'{"traces":[{}],"result":{"resourceSpans":['
    piece = b"{}," * (_PIECE // 3)
    for _ in range(size // len(piece)):
        yield piece
    yield b"{}]}}"


def nested(depth: int) -> bytes:
    return b'{"services":' + b"[" * depth + b"]" * depth + b"}"


class Repeating:
    """Returns the same full page for every query."""

    def __init__(self, traces: int = 200) -> None:
        self._ids = [f"{number:032x}" for number in range(1, traces + 1)]

    def __call__(self, path: str) -> Iterator[bytes]:
        return whole(json.dumps(self._document(path)).encode())

    def _document(self, path: str) -> Mapping[str, Any]:
        if path.startswith("/api/v3/services"):
            return {"services": ["desk"]}
        if path.startswith("/api/search"):
            return {"traces": [{"traceID": id_, "startTimeUnixNano": "5"} for id_ in self._ids]}
        ids = self._ids if path.startswith("/api/v3/traces?") else [path.rpartition("/")[2].partition("?")[0]]
        spans = [{"traceId": id_, "spanId": id_[:16], "name": "chat", "startTimeUnixNano": "5"} for id_ in ids]
        return {"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}}


class Inventing(Repeating):
    """Names unknown traces each time."""

    def __init__(self, traces: int = 200) -> None:
        super().__init__(traces)
        self._next = itertools.count(1)

    def _document(self, path: str) -> Mapping[str, Any]:
        if path.startswith("/api/search"):
            hits = [{"traceID": f"{next(self._next):032x}", "startTimeUnixNano": "5"} for _ in self._ids]
            return {"traces": hits}
        return {"trace": {"resourceSpans": []}}
