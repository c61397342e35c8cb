"""gRPC calls that announce a message and send a part of it: HTTP/2 by hand, since no client does that."""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from types import TracebackType

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_HEADERS, _ACK = 4, 1
_FRAME, _WINDOW = 16_384, 65_535


class HalfSender:
    """One connection. A context manager; ``ended`` has the streams that the server ended."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._windows: defaultdict[int, int] = defaultdict(lambda: self._initial)
        self._initial = _WINDOW
        self._moved = asyncio.Condition()
        self._next = 1
        self.ended: set[int] = set()
        self.sent: defaultdict[int, int] = defaultdict(int)
        self.max_streams = 1 << 31
        self.settled = asyncio.Event()

    async def __aenter__(self) -> HalfSender:
        self._reader, self._writer = await asyncio.open_connection(*self._place)
        self._windows[0] = _WINDOW
        self._writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._frame(_SETTINGS, 0, 0)
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def call(self, path: str, announced: int, sent: int) -> int:
        """Begins a call whose message is ``announced`` bytes long and sends as many of ``sent`` as the server lets it,
        then leaves it there. Returns the stream when they are sent; waits for as long as they are not."""
        stream, self._next = self._next, self._next + 2
        headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "half-sent", "te": "trailers"}
        headers["content-type"] = "application/grpc"
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())
        self._frame(_HEADERS, _END_HEADERS, stream, block)
        await self._send(stream, b"\0" + struct.pack(">I", announced))
        while self.sent[stream] < sent + 5 and stream not in self.ended:
            await self._send(stream, bytes(min(_FRAME, sent + 5 - self.sent[stream])))
        return stream

    async def _send(self, stream: int, data: bytes) -> None:
        async with self._moved:
            await self._moved.wait_for(
                lambda: min(self._windows[0], self._windows[stream]) >= len(data) or stream in self.ended
            )
        if stream not in self.ended:
            for window in (0, stream):
                self._windows[window] -= len(data)
            self.sent[stream] += len(data)
            self._frame(_DATA, 0, stream, data)
            await self._writer.drain()

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self._writer.write(struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream))
        self._writer.write(payload)

    async def _listen(self) -> None:
        while True:
            head = await self._reader.readexactly(9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            payload = await self._reader.readexactly(size)
            async with self._moved:
                self._take(kind, flags, int.from_bytes(head[5:], "big"), payload)
                self._moved.notify_all()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _WINDOW_UPDATE:
            self._windows[stream] += int.from_bytes(payload, "big")
        elif kind == _SETTINGS and not flags & _ACK:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == 4:
                    for known in self._windows:
                        self._windows[known] += 0 if known == 0 else value - self._initial
                    self._initial = value
                elif key == 3:
                    self.max_streams = value
            self._frame(_SETTINGS, _ACK, 0)
            self.settled.set()
        elif kind == _PING and not flags & _ACK:
            self._frame(_PING, _ACK, 0, payload)
        elif kind in (_RST_STREAM, _HEADERS) and (kind == _RST_STREAM or flags & 1):
            self.ended.add(stream)


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()
