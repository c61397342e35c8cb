"""Maps refusals to gRPC and HTTP answers."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import Accepted, Refusal

_log = logging.getLogger(__name__)
_LOG_INTERVAL_S = 10.0


class Outcomes:
    """Counts outcomes of an endpoint, and logs unexpected errors every ten seconds at most."""

    def __init__(self, door: str, telemetry: Telemetry, clock: Callable[[], float] = time.monotonic) -> None:
        self._door, self._telemetry, self._clock = door, telemetry, clock
        self._quiet_until, self._unlogged = float("-inf"), 0

    def accepted(self, accepted: Accepted) -> None:
        self._telemetry.request(self._door, "partial" if accepted.rejected else "accepted")

    def refused(self, error: Exception) -> Refusal:
        if isinstance(error, Refusal):
            self._telemetry.request(self._door, error.outcome)
            return error
        answer = Refusal("internal error; see the collector's log")
        self._telemetry.request(self._door, answer.outcome)
        now = self._clock()
        if now < self._quiet_until:
            self._unlogged += 1
            return answer
        # Only type and place: the text of an error can quote messages of users.
        place, kind = "".join(traceback.format_tb(error.__traceback__)), type(error).__name__
        more = f"{self._unlogged} more since the last such line"
        _log.error("%s door: request failed with %s (%s)\n%s", self._door, kind, more, place)
        self._quiet_until, self._unlogged = now + _LOG_INTERVAL_S, 0
        return answer


def status_of(answer: Refusal) -> Status:
    """Return a ``google.rpc.Status``, with a ``RetryInfo`` if a retry makes sense."""
    status = Status(code=grpc.StatusCode[answer.grpc].value[0], message=str(answer))
    if answer.retry_after_s is not None:
        detail = AnyMessage()
        detail.Pack(_retry_info(answer.retry_after_s))
        status.details.append(detail)
    return status


def trailers_of(answer: Refusal) -> tuple[tuple[str, bytes], ...]:
    """Return gRPC trailers that request a retry, if any. Go and Java read the first, the Python exporter the second."""
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
