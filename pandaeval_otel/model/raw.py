"""A decoded span and log record, in OTLP's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.base import semconv

MAX_TIME = (1 << 63) - 1
"""Maximum time in nanoseconds (the year 2262). Later times are replaced, because stores have no more bits."""
STATUS_UNSET, STATUS_OK, STATUS_ERROR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Scope:
    """The instrumentation that emitted a span."""

    name: str = ""
    version: str = ""


@dataclass(slots=True)
class Resource:
    """The emitter of a span.

    ``service``: ``service.name``, or ``unknown_service``. ``environment``: ``deployment.environment.name`` or its
    earlier name, else ``""``.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    service: str = field(init=False, compare=False)
    environment: str = field(init=False, compare=False)
    names_session: bool = field(init=False, compare=False, repr=False)
    """Whether the resource has a session key. Precomputed, because it is checked for each span and rarely true."""

    def __post_init__(self) -> None:
        get = self.attributes.get
        self.service = str(get("service.name") or "unknown_service")
        self.environment = str(get("deployment.environment.name") or get("deployment.environment") or "")
        self.names_session = not semconv.SESSION_KEYS.isdisjoint(self.attributes)


@dataclass(frozen=True, slots=True)
class RawEvent:
    """A span event. ``time_ns`` is Unix nanoseconds."""

    name: str
    time_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawLink:
    """A span link, with hex ids."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


# Not frozen: setting the fields of a frozen object takes four times as long, and there are many.
@dataclass(slots=True)
class RawSpan:
    """A span. Ids are lower-case hex (32 and 16 digits). ``parent_id`` is ``""`` without a parent. Times are Unix
    nanoseconds.

    Attribute values are ``str | int | float | bool | bytes | list | dict | None``.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    status_code: int = STATUS_UNSET
    status_message: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[RawEvent] = ()
    links: Sequence[RawLink] = ()
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    flags: int = 0
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True)
class RawLog:
    """A log record that names a trace. ``body`` has the value types of attributes."""

    trace_id: str
    span_id: str = ""
    event_name: str = ""
    time_ns: int = 0
    body: Any = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    severity: int = 0
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
