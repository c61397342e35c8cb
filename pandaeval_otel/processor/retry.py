"""Reads from a collector's answer when to try again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

_TRAILER = "google.rpc.retryinfo-bin"
_FIELD_1, _MAX_SHORT = 0x0A, 0x7F


def retry_after_s(trailers: Iterable[Any] | None) -> float | None:
    """Seconds that a ``google.rpc.RetryInfo`` in gRPC trailers asks for; ``None``: there is none, do not come back.

    ``trailers``: pairs of key and value. The message is one duration in field 1; read by hand, it takes no package of
    Google's into applications.
    """
    for key, value in trailers or ():
        if key == _TRAILER and isinstance(value, bytes):
            if len(value) < 2 or value[0] != _FIELD_1 or value[1] > _MAX_SHORT:
                return 0.0
            try:
                delay = Duration.FromString(value[2 : 2 + value[1]])
            except DecodeError:
                return 0.0
            return max(0.0, delay.seconds + delay.nanos / 1e9)
    return None
