"""Hands members of sessions to their owner: one collector over gRPC, or those that share a Kafka topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from pandaeval_collector.exporters import RetryLaterError, Row, Sent
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.kafka import KafkaExporter
from pandaeval_otel._proto.session_service_pb2 import Member
from pandaeval_otel.wire.fields import field


def channel(endpoint: str, certificate: str | None) -> grpc.aio.Channel:
    """Opens a channel. ``certificate``: file with the authority to trust where the endpoint is ``https://``. Raises
    ``OSError`` where it cannot be read."""
    options = [("grpc.max_send_message_length", -1)]
    target = endpoint.rpartition("//")[2]
    if endpoint.startswith("https://"):
        authority = Path(certificate).read_bytes() if certificate else None
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(authority), options=options)
    return grpc.aio.insecure_channel(target, options=options)


def headers(token: str | None) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a call. ``token``: the peer's."""
    return () if token is None else (("authorization", f"Bearer {token}"),)


def cure(error: grpc.aio.AioRpcError, endpoint_key: str, certificate_key: str) -> str:
    """Returns what to do about a failed call, to be added to its error. ``endpoint_key`` and ``certificate_key``: the
    settings that hold the endpoint and its authority."""
    details = (error.details() or "").upper()
    if "CERTIFICATE_VERIFY_FAILED" in details:
        return f": set {certificate_key} to the file of its authority"
    if "WRONG_VERSION_NUMBER" in details or "WRONG VERSION NUMBER" in details:
        return f": it does not speak TLS there, write http:// in {endpoint_key}"
    if "SOCKET CLOSED" in details or "CONNECTION RESET" in details or "ENDPOINT CLOSING" in details:
        return f": if it speaks TLS, write https:// in {endpoint_key}; client certificates it must not demand"
    return ""


_METHOD = "/pandaeval.v1.SessionService/TakeMembers"
_TIMEOUT_S = 20.0
_AT_ONCE_BYTES = 2 << 20
_MEMBER = 0x0A

Complete = Callable[[bytes], bytes]
"""Adds to an encoded member, just before it is sent, what goes along with it."""


class ToOwner:
    """Exports each member at least once, in order; what the owner does not take waits. ``token``: the owner's."""

    name = "sessions"
    source = MEMBERS
    off = False

    def __init__(
        self, endpoint: str, complete: Complete, *, token: str | None = None, certificate: str | None = None
    ) -> None:
        self._endpoint, self._complete = endpoint, complete
        self._headers, self._certificate = headers(token), certificate
        self._channel: grpc.aio.Channel | None = None

    async def open(self, position: str) -> str:
        return position

    async def export(self, rows: Sequence[Row]) -> Sent:
        some = await asyncio.to_thread(lambda: list(completed(rows, self._complete)))
        try:
            await self._send(some)
        except _TooLargeError:
            some = [rows[0].body]
            await self._send(some)
        return Sent(len(some))

    async def _send(self, some: Sequence[bytes]) -> None:
        request = b"".join(field(_MEMBER, each) for each in some)
        try:
            if self._channel is None:
                self._channel = channel(self._endpoint, self._certificate)
            call = self._channel.unary_unary(_METHOD, None, None)
            await call(request, timeout=_TIMEOUT_S, metadata=self._headers)
        except OSError as error:
            raise RetryLaterError(f"sessions.certificate cannot be read: {error.strerror}") from error
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than" in (error.details() or ""):
                raise _TooLargeError(f"{self._endpoint}: {error.details()}") from error
            await self.close()  # a connection whose other end has vanished looks alive for a quarter of an hour
            said = cure(error, "sessions.forward_to", "sessions.certificate")
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                said = ": sessions.token_env has to name the variable with the token that it has in its own"
            raise RetryLaterError(f"{self._endpoint}: {error.code().name}: {error.details()}{said}") from error

    async def close(self) -> None:
        if self._channel is not None:
            closing, self._channel = self._channel, None
            await closing.close(None)


class _TooLargeError(RetryLaterError):
    """The request is larger than the owner takes (``server.max_request_bytes``); one bare member may fit."""


class ToTopic(KafkaExporter):
    """Exports members to a topic, keyed by the ids of sessions, for the collectors that share it."""

    name = "sessions"
    source = MEMBERS

    def __init__(self, made: Any, topic: str, complete: Complete) -> None:
        super().__init__(made, topic)
        self._complete = complete

    def message(self, body: bytes) -> tuple[str, bytes]:
        return Member.FromString(body).session_id, self._complete(body)


def completed(rows: Sequence[Row], complete: Complete) -> Iterator[bytes]:
    """Yields complete members from the front of a batch: at least one, and no more than go into one request."""
    size = 0
    for row in rows:
        body = complete(row.body)
        size += len(body)
        if size > len(body) and size > _AT_ONCE_BYTES:
            return
        yield body
