"""The body of an OTLP/HTTP request: decompressed as it comes, counted, and turned into protobuf bytes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from pandaeval_collector.base.runtime.aside import aside
from pandaeval_collector.base.untrusted.json_size import parsed_size
from pandaeval_collector.receivers._answers import TooSlow
from pandaeval_collector.receivers._inflate import inflater_for
from pandaeval_collector.receivers._protocol import Malformed, TooLarge, UnsupportedMedia
from pandaeval_collector.receivers._signals import Signal
from pandaeval_collector.receivers.admission import Reservation
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_THREAD_FROM_BYTES = 256 * 1024  # JSON of this size takes some 10 ms to convert: too long to hold up the event loop


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """``max_bytes`` before as well as after decompression; ``timeout_s`` for all of the body to arrive."""

    max_bytes: int
    timeout_s: float


def media_type(request: Request) -> str:
    """``application/x-protobuf`` or ``application/json``. Raises :class:`UnsupportedMedia` for anything else, which
    also keeps web pages out: a browser sends neither to another site without asking first."""
    header = request.headers.get("content-type", "")
    found = header.partition(";")[0].strip().lower()
    if found not in (PROTOBUF, JSON):
        raise UnsupportedMedia(f"content-type {found[:80]!r} is neither {PROTOBUF} nor {JSON}")
    return found


async def read_body(request: Request, reservation: Reservation, limits: BodyLimits) -> bytes:
    """The decompressed body; ``reservation`` grows along with it. Raises :class:`TooLarge`, :class:`Malformed`,
    :class:`TooSlow`, :class:`UnsupportedMedia` and what ``reservation.grow`` raises."""
    inflater = inflater_for(request.headers.get("content-encoding", ""))
    _check_length(int(request.headers.get("content-length", 0)), limits)
    pieces: list[bytes] = []
    arrived = size = 0
    try:
        async with asyncio.timeout(limits.timeout_s):
            with reservation.arrives():
                async for chunk in request.stream():
                    arrived += len(chunk)
                    _check_length(arrived, limits)
                    for piece in inflater.feed(chunk):
                        size += len(piece)
                        _check_length(size, limits)
                        reservation.grow(len(piece))
                        pieces.append(piece)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {limits.timeout_s:g} s") from None
    except ClientDisconnect:
        raise Malformed("the connection was closed before the end of the body") from None
    inflater.finish()
    return b"".join(pieces)


async def protobuf_from_json(signal: Signal, body: bytes, reservation: Reservation) -> bytes:
    """An OTLP/JSON body as protobuf bytes; ``reservation`` grows by what parsing takes. Raises :class:`Malformed`."""
    reservation.grow(parsed_size(body))
    if len(body) < _THREAD_FROM_BYTES:
        return _convert(signal, body)
    return await aside(_convert, signal, body)


def _convert(signal: Signal, body: bytes) -> bytes:
    try:
        return signal.from_json(decode_json(body)).SerializeToString()
    except BadOtlp as error:
        raise Malformed(str(error)) from None


def _check_length(size: int, limits: BodyLimits) -> None:
    if size > limits.max_bytes:
        raise TooLarge(f"the body is larger than {limits.max_bytes} bytes")
