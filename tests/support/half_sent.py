"""gRPC calls that send only part of a message, as HTTP/2 frames by h2."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import TracebackType

import h2.config
import h2.connection
import h2.events


class HalfSender:
    """One connection as a context manager. ``ended``: ended streams by event; ``listening``: done after hang-up."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._machine = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._moved = asyncio.Condition()
        self.ended: dict[int, str] = {}
        self.sent: defaultdict[int, int] = defaultdict(int)
        self.settled = asyncio.Event()

    async def __aenter__(self) -> HalfSender:
        self._reader, self._writer = await asyncio.open_connection(*self._place)
        self._machine.initiate_connection()
        self._flush()
        self.listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self.listening.cancel()
        await asyncio.gather(self.listening, return_exceptions=True)

    async def call(self, path: str, announced: int, sent: int) -> int:
        """Start a call of ``announced`` bytes, send ``sent``, and leave it open. Return the stream."""
        stream = self._machine.get_next_available_stream_id()
        headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "half-sent", "te": "trailers"}
        self._machine.send_headers(stream, [*headers.items(), ("content-type", "application/grpc")])
        self._flush()
        head = b"\0" + announced.to_bytes(4, "big")
        while self.sent[stream] < sent + len(head):
            room = await self._room(stream)
            if not room:
                break
            data = (head if not self.sent[stream] else bytes(sent + len(head) - self.sent[stream]))[:room]
            self._machine.send_data(stream, data)
            self.sent[stream] += len(data)
            self._flush()
            await self._writer.drain()
        return stream

    async def _room(self, stream: int) -> int:
        """Return the sendable bytes; wait for at least five. 0: ended stream."""
        async with self._moved:
            await self._moved.wait_for(
                lambda: stream in self.ended or self._machine.local_flow_control_window(stream) >= 5
            )
        if stream in self.ended:
            return 0
        return min(self._machine.local_flow_control_window(stream), self._machine.max_outbound_frame_size)

    async def _listen(self) -> None:
        while data := await self._reader.read(65_536):
            async with self._moved:
                for event in self._machine.receive_data(data):
                    if isinstance(event, h2.events.RemoteSettingsChanged):
                        self.settled.set()
                    elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
                        self.ended[event.stream_id] = type(event).__name__
                self._flush()
                self._moved.notify_all()

    def _flush(self) -> None:
        self._writer.write(self._machine.data_to_send())
