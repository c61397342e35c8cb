"""Encodes refusals as ``google.rpc.Status``: what OTLP sends in gRPC trailers and in HTTP bodies."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from pandaeval_collector.receivers._answers import DoorAnswer


def status_of(answer: DoorAnswer) -> Status:
    """``google.rpc.Status`` of an answer, with a ``RetryInfo`` where the sender may come back."""
    status = Status(code=answer.code, message=answer.message)
    if answer.retry_after_s is not None:
        detail = AnyMessage()
        detail.Pack(_retry_info(answer.retry_after_s))
        status.details.append(detail)
    return status


def trailers_of(answer: DoorAnswer) -> tuple[tuple[str, bytes], ...]:
    """gRPC trailers that make the sender come back: Go and Java read the first, the Python exporter the second. None
    where it should not, since any RetryInfo is taken for permission."""
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
