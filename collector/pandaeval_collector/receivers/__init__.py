"""The receivers: OTLP over gRPC and HTTP, completed traces and result streams over gRPC, and health checks.

Imports base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request is stored, except ``rejected`` items, which must not be sent again; ``message`` is the reason."""

    rejected: int = 0
    message: str = ""


class Refusal(Exception):  # noqa: N818 - its subclasses are answers: overloaded, draining, malformed
    """A request was refused and not stored.

    The text goes to the client. ``retry_after_s``: set if a retry makes sense.

    Clients retry differently: RESOURCE_EXHAUSTED only with a RetryInfo; older Python SDKs drop HTTP 429; UNAVAILABLE
    opens a new gRPC channel. So overload is 503, and UNAVAILABLE means shutdown.
    """

    outcome, grpc, http = "internal_error", "INTERNAL", 500
    retry_after_s: float | None = None


class Overloaded(Refusal):
    """A budget (memory, disk) is used up; retry in ``retry_after_s`` seconds."""

    outcome, grpc, http = "overloaded", "RESOURCE_EXHAUSTED", 503

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Draining(Refusal):
    """The collector is starting or shutting down; retry."""

    outcome, grpc, http = "draining", "UNAVAILABLE", 503


class TooLarge(Refusal):
    """The request exceeds every limit; do not retry."""

    outcome, grpc, http = "too_large", "RESOURCE_EXHAUSTED", 413


class TooMany(Refusal):
    """The request has too many objects; do not retry."""

    # Not RESOURCE_EXHAUSTED, which some senders always retry.
    outcome, grpc, http = "too_large", "INVALID_ARGUMENT", 413


class Malformed(Refusal):
    """The request is malformed; do not retry."""

    outcome, grpc, http = "malformed", "INVALID_ARGUMENT", 400


class UnsupportedMedia(Refusal):
    """The content type or encoding is not supported."""

    outcome, grpc, http = "malformed", "INVALID_ARGUMENT", 415


class TooSlow(Refusal):
    """The body did not arrive in time."""

    outcome, grpc, http = "malformed", "DEADLINE_EXCEEDED", 408


class OthersHost(Refusal):
    """The ``Host`` header may belong to another site."""

    outcome, grpc, http = "unauthenticated", "PERMISSION_DENIED", 421


class OthersPage(Refusal):
    """A web page of another origin sent the request."""

    outcome, grpc, http = "unauthenticated", "PERMISSION_DENIED", 403


class Unauthenticated(Refusal):
    """The request has no token, or a wrong one."""

    outcome, grpc, http = "unauthenticated", "UNAUTHENTICATED", 401


class Dense(Exception):  # noqa: N818 - not an error: the receiver weighs the request and tries again
    """A request with many items in few bytes; pass it again as large."""


class Ingest(Protocol):
    """Takes requests from receivers, on the event loop.

    ``large``: split on a thread. Else a dense request raises :class:`Dense`.
    """

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        """Store a decompressed ``ExportTraceServiceRequest``. Returns after the commit. Raises a :class:`Refusal`."""
        ...

    async def logs(self, request: bytes, large: bool = False) -> Accepted:
        """Store an ``ExportLogsServiceRequest`` likewise."""
        ...

    async def submit(self, traces: Sequence[CompletedTrace], large: bool = False) -> list[str]:
        """Store completed traces in one commit.

        Returns a refusal reason or an empty string for each. Raises a :class:`Refusal`.
        """
        ...
