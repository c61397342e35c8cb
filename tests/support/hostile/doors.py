"""Senders of malformed or slow HTTP and gRPC traffic.

Each returns the answer, such as ``HTTP 413``, or ``no answer``.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time
from collections.abc import Iterable, Iterator

import grpc

from support.half_sent import HalfSender

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
SUBMIT = "/pandaeval.v1.TraceService/SubmitTraces"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
PATIENCE_S = 90.0
NO_ANSWER = "no answer"


def post(address: str, body: bytes, *, path: str = "/v1/traces", media: str = PROTOBUF, encoding: str = "") -> str:
    """Send one request on its own connection."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    headers = {"content-type": media} | ({"content-encoding": encoding} if encoding else {})
    try:
        # A server may answer and hang up before it has read everything. Then only the answer counts.
        with contextlib.suppress(ConnectionError):
            connection.request("POST", path, body, headers)
        return f"HTTP {connection.getresponse().status}"
    except (OSError, http.client.HTTPException):
        return NO_ANSWER
    finally:
        connection.close()


def get(address: str, path: str) -> str:
    """Return the status of a fully read page."""
    return ask(address, "GET", path)


def ask(address: str, method: str, path: str) -> str:
    """Send a request without a body."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers={"content-type": JSON})
        response = connection.getresponse()
        response.read()
        return f"HTTP {response.status}"
    except (OSError, http.client.HTTPException):
        return NO_ANSWER
    finally:
        connection.close()


class Channel:
    """gRPC with requests as bytes. Thread-safe context manager."""

    def __init__(self, target: str) -> None:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(target, options=options)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def call(self, body: bytes, method: str = TRACES, compressed: bool = False) -> str:
        return call_status(self.begin(body, method, compressed))

    def begin(self, body: bytes, method: str = TRACES, compressed: bool = False) -> grpc.Future:
        """Start a request; :func:`call_status` waits for its answer."""
        call = self._channel.unary_unary(method)
        compression = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
        future: grpc.Future = call.future(body, timeout=PATIENCE_S, compression=compression)
        return future


def call_status(call: grpc.Future) -> str:
    """Return a call's answer."""
    error = call.exception()
    if error is None:
        return "gRPC OK"
    return f"gRPC {error.code().name}" if isinstance(error, grpc.RpcError) else NO_ANSWER


def half_sent(target: str, streams: int, size: int, hold_s: float) -> list[str]:
    """Open calls that announce ``size`` bytes, omit the last byte and wait. Returns the streams ended by the server."""
    return asyncio.run(_half_sent(target, streams, size, hold_s))


async def _half_sent(target: str, streams: int, size: int, hold_s: float) -> list[str]:
    host, port = target.rsplit(":", 1)
    async with HalfSender(host, int(port)) as sender:
        calls = [asyncio.create_task(sender.call(TRACES, size, size - 1)) for _ in range(streams)]
        await asyncio.wait([sender.listening], timeout=hold_s)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return [*sender.ended.values()]


def unread(address: str, path: str, number: int, hold_s: float) -> list[str]:
    """Request ``path`` on many connections without reading. Returns statuses or ``closed``."""
    host, port = address.rsplit(":", 1)
    connections: list[socket.socket] = []
    for _ in range(number):
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, int(port)), 5)
            connections.append(connection)
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    time.sleep(hold_s)
    return [_taken(connection) for connection in connections]


def _taken(connection: socket.socket) -> str:
    connection.settimeout(PATIENCE_S)
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        response.read()
        return f"HTTP {response.status}"
    except (OSError, http.client.HTTPException):
        return "closed"
    finally:
        connection.close()


@contextlib.contextmanager
def silent(address: str, number: int) -> Iterator[None]:
    host, port = address.rsplit(":", 1)
    with contextlib.ExitStack() as connections:
        for _ in range(number):
            with contextlib.suppress(OSError):
                connections.enter_context(socket.create_connection((host, int(port)), 5))
        yield


def stalled(address: str, requests: Iterable[bytes], hold_s: float) -> list[str]:
    """Send requests and stall. Returns status lines or ``closed``."""
    host, port = address.rsplit(":", 1)
    connections: list[socket.socket] = []
    answers: list[str] = []
    for request in requests:
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, int(port)), 5)
            connection.settimeout(5)
            connections.append(connection)
            connection.sendall(request)
    until = time.monotonic() + hold_s
    for connection in connections:
        connection.settimeout(max(0.001, until - time.monotonic()))
        try:
            line = connection.recv(64)
            answers.append(f"HTTP {line.split()[1].decode()}" if line.startswith(b"HTTP/") else "closed")
        except TimeoutError:
            answers.append("still open")
        except OSError:
            answers.append("closed")
        finally:
            connection.close()
    return answers
