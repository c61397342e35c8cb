"""The one table of what each refusal means on either door, and the counting and logging that goes with it.

Senders differ in what they retry: RESOURCE_EXHAUSTED is tried again only with a RetryInfo, HTTP 429 is dropped by older
Python SDKs, and UNAVAILABLE makes the Python gRPC exporter open a new channel. Hence 503 for overload, and hence
UNAVAILABLE only where the collector really goes away.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import (
    Accepted,
    Draining,
    Malformed,
    Overloaded,
    Refusal,
    TooLarge,
    TooMany,
    UnsupportedMedia,
)

_log = logging.getLogger(__name__)
_LOG_INTERVAL_S = 10.0


class Unauthenticated(Refusal):
    """The request has no token, or a wrong one."""


class OthersHost(Refusal):
    """The request names a host that may be another's."""


class OthersPage(Refusal):
    """A web page of another origin sends the request."""


class TooSlow(Refusal):
    """The body did not arrive in time."""


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """The answer to a sender as gRPC status, HTTP status and words. ``retry_after_s``: set where it may come back."""

    outcome: str
    grpc: grpc.StatusCode
    http: int
    message: str
    retry_after_s: float | None = None


_ANSWERS: dict[type[Refusal], tuple[str, grpc.StatusCode, int]] = {
    Overloaded: ("overloaded", grpc.StatusCode.RESOURCE_EXHAUSTED, 503),
    Draining: ("draining", grpc.StatusCode.UNAVAILABLE, 503),
    TooLarge: ("too_large", grpc.StatusCode.RESOURCE_EXHAUSTED, 413),
    # Unlike RESOURCE_EXHAUSTED, which some senders try again whatever it says.
    TooMany: ("too_large", grpc.StatusCode.INVALID_ARGUMENT, 413),
    Malformed: ("malformed", grpc.StatusCode.INVALID_ARGUMENT, 400),
    UnsupportedMedia: ("malformed", grpc.StatusCode.INVALID_ARGUMENT, 415),
    TooSlow: ("malformed", grpc.StatusCode.DEADLINE_EXCEEDED, 408),
    OthersHost: ("unauthenticated", grpc.StatusCode.PERMISSION_DENIED, 421),
    OthersPage: ("unauthenticated", grpc.StatusCode.PERMISSION_DENIED, 403),
    Unauthenticated: ("unauthenticated", grpc.StatusCode.UNAUTHENTICATED, 401),
}


class Outcomes:
    """Counts what became of the requests at one door, and logs unexpected errors, at most one in ten seconds."""

    def __init__(self, door: str, telemetry: Telemetry, clock: Callable[[], float] = time.monotonic) -> None:
        self._door, self._telemetry, self._clock = door, telemetry, clock
        self._quiet_until, self._unlogged = float("-inf"), 0

    def accepted(self, accepted: Accepted) -> None:
        """Counts a stored request."""
        self._telemetry.request(self._door, "partial" if accepted.rejected else "accepted")

    def refused(self, error: Exception) -> DoorAnswer:
        """Counts a refused or failed request; returns the answer to it. Anything but a known refusal is an internal
        error, whose text stays inside."""
        if isinstance(error, Refusal) and (known := _ANSWERS.get(type(error))):
            answer = DoorAnswer(*known, str(error), error.retry_after_s if isinstance(error, Overloaded) else None)
        else:
            words = "internal error; see the collector's log"
            answer = DoorAnswer("internal_error", grpc.StatusCode.INTERNAL, 500, words)
        self._telemetry.request(self._door, answer.outcome)
        if answer.outcome == "internal_error":
            now = self._clock()
            if now < self._quiet_until:
                self._unlogged += 1
                return answer
            # Type and place only: the text of an error may quote what people wrote to their agent.
            place, kind = "".join(traceback.format_tb(error.__traceback__)), type(error).__name__
            more = f"{self._unlogged} more since the last such line"
            _log.error("%s door: request failed with %s (%s)\n%s", self._door, kind, more, place)
            self._quiet_until, self._unlogged = now + _LOG_INTERVAL_S, 0
        return answer


def status_of(answer: DoorAnswer) -> Status:
    """Returns the ``google.rpc.Status`` of an answer, with a ``RetryInfo`` where the sender may come back."""
    status = Status(code=answer.grpc.value[0], message=answer.message)
    if answer.retry_after_s is not None:
        detail = AnyMessage()
        detail.Pack(_retry_info(answer.retry_after_s))
        status.details.append(detail)
    return status


def trailers_of(answer: DoorAnswer) -> tuple[tuple[str, bytes], ...]:
    """Returns gRPC trailers that make the sender come back: Go and Java read the first, the Python exporter the second.
    None where it should not, since any RetryInfo is taken for permission."""
    if answer.retry_after_s is None:
        return ()
    return (
        ("grpc-status-details-bin", status_of(answer).SerializeToString()),
        ("google.rpc.retryinfo-bin", _retry_info(answer.retry_after_s).SerializeToString()),
    )


def _retry_info(seconds: float) -> RetryInfo:
    delay = Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    return RetryInfo(retry_delay=delay)
