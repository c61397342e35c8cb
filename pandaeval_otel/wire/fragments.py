"""The parts of a split request: items, gathered by trace into fragments."""

from __future__ import annotations

from dataclasses import dataclass, field


class MalformedOtlpError(ValueError):
    """Invalid bytes for the request type."""


class DenseError(Exception):
    """A request with too many items to split at once."""


@dataclass(slots=True)
class Item:
    """Ids of a span or log record. ``id``: span id (8 bytes), or ``b"L"`` and a content hash for a log record.

    ``parent``: parent span id, or ``b""``. ``remote``: the parent is in another process.
    """

    id: bytes
    parent: bytes = b""
    remote: bool = False

    @property
    def is_log(self) -> bool:
        return len(self.id) != 8


@dataclass(slots=True)
class Fragment:
    """The items of a trace in a request. ``chunk``: an OTLP request with only these items."""

    trace_id: bytes
    logs: bool
    items: list[Item] = field(default_factory=list)
    chunk: bytes = b""
    start_ns: int = 0
    """Earliest start among the spans, Unix nanoseconds; 0 for log records."""


@dataclass(slots=True)
class Split:
    """A split request. ``decoded`` = items of ``fragments`` + ``own_output`` + ``ignored`` + ``rejected``."""

    fragments: list[Fragment]
    decoded: int = 0
    own_output: int = 0
    ignored: int = 0
    rejected: int = 0
    message: str = ""
    claimed: int = 0
    """Items in the collector's scope that are not its output. Other counts include them."""
