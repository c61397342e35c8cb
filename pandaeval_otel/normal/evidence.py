"""The evidence of a trace: distinct spans and log records, and their digest.

Equal spans give equal evidence in any order, batching or duplication. Log records of the same time keep their order of
arrival: many clocks count milliseconds, and a conversation is logged in less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from pandaeval_otel.model.raw import RawLog, RawSpan
from pandaeval_otel.wire.bounds import NOTE, Room
from pandaeval_otel.wire.decode import decode_logs, decode_spans

_EARLIEST = attrgetter("start_ns", "span_id")
_TIME = attrgetter("time_ns")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Distinct spans by (start, id) and log records by time. ``digest``: 32 hex digits."""

    spans: tuple[RawSpan, ...]
    logs: tuple[RawLog, ...]
    digest: str
    notes: tuple[str, ...] = ()


def gather(chunks: Iterable[tuple[bool, bytes]]) -> Evidence:
    """Decode a trace's stored chunks, each ``(is_logs, bytes)``.

    Among differing copies of a span, keeps the copy with most attributes, then most content, then the larger hash.
    Raises :class:`pandaeval_otel.wire.bounds.TooMuchError`.
    """
    room = Room()
    spans: dict[str, tuple[RawSpan, bytes]] = {}
    logs: dict[bytes, RawLog] = {}
    for is_logs, chunk in chunks:
        if is_logs:
            logs.update((digest, log) for log, digest in decode_logs(chunk, room))
            continue
        for pair in decode_spans(chunk, room):
            span_id = pair[0].span_id
            kept = spans.get(span_id)
            if kept is None or (kept[1] != pair[1] and _rank(*pair) > _rank(*kept)):
                spans[span_id] = pair
    hashed = [bytes.fromhex(span_id) + spans[span_id][1] for span_id in sorted(spans)]
    hashed += [b"log" + digest for digest in sorted(logs)]
    return Evidence(
        tuple(sorted([span for span, _ in spans.values()], key=_EARLIEST)),
        tuple(sorted(logs.values(), key=_TIME)),
        hashlib.blake2b(b"".join(hashed), digest_size=16).hexdigest(),
        (NOTE,) if room.cut else (),
    )


def _rank(span: RawSpan, digest: bytes) -> tuple[int, int, bytes]:
    content = sum(len(str(value)) for value in span.attributes.values()) + len(span.events)
    return len(span.attributes), content, digest
