"""The two OTLP request types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from pandaeval_collector.base.runtime.cores import aside
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import Accepted, Dense, Ingest, Malformed, TooMany
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers.admission import Admission, Reservation
from pandaeval_otel.wire import weight
from pandaeval_otel.wire.otlp_json import logs_from_json, traces_from_json

_ITEM_BYTES = 400
"""Bytes of memory per item while a request is split and stored (measured: 200 to 400)."""
_COPIES = 2
"""Copies of a scanned request, besides its bytes."""
_SCANNED_FROM = 1 << 20
"""Minimum bytes of a request whose attributes are counted. In smaller requests, only spans are counted."""
_LARGE, _LARGE_ITEMS = 512 * 1024, 5_000
"""Minimum bytes or items of a request that a thread processes. Smaller requests take up to 50 ms on the event loop."""
_LARGE_SUBMISSION = 8 * 1024
"""Submissions up to this size in bytes need no weighing."""


@dataclass(frozen=True, slots=True)
class Signal:
    """An OTLP request type.

    ``store`` passes a protobuf request to an ingest. ``from_json`` converts OTLP/JSON. ``respond`` makes the response.
    """

    grpc_service: str
    http_path: str
    kind: weight.RequestKind
    store: Callable[[Ingest, bytes, bool], Awaitable[Accepted]]
    from_json: Callable[[Mapping[str, Any]], Message]
    respond: Callable[[Accepted], Message]


def _response(response: Callable[..., Message], rejected: str, accepted: Accepted) -> Message:
    if not (accepted.rejected or accepted.message):
        return response()
    return response(partial_success={rejected: accepted.rejected, "error_message": accepted.message})


TRACES = Signal(
    grpc_service="opentelemetry.proto.collector.trace.v1.TraceService",
    http_path="/v1/traces",
    kind=weight.TRACES,
    store=lambda ingest, request, large: ingest.traces(request, large),
    from_json=traces_from_json,
    respond=partial(_response, ExportTraceServiceResponse, "rejected_spans"),
)
LOGS = Signal(
    grpc_service="opentelemetry.proto.collector.logs.v1.LogsService",
    http_path="/v1/logs",
    kind=weight.LOGS,
    store=lambda ingest, request, large: ingest.logs(request, large),
    from_json=logs_from_json,
    respond=partial(_response, ExportLogsServiceResponse, "rejected_log_records"),
)
SIGNALS = (TRACES, LOGS)


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """Shared settings of receivers.

    ``max_bytes``: decompressed. ``max_items``: spans or records, resources and scopes; attributes, events and links
    count a tenth. ``token``: required everywhere. ``reading``: shared reader of gRPC messages.
    """

    admission: Admission
    max_bytes: int = 16 << 20
    max_items: int = 200_000
    token: str | None = None
    telemetry: Telemetry = field(default_factory=Telemetry)
    reading: BodyReader = field(default_factory=lambda: BodyReader(2))

    def __post_init__(self) -> None:
        if self.token == "":
            raise ValueError("the token is empty: set the environment variable that server.token_env names")


async def store(
    signal: Signal, ingest: Ingest, request: bytes, reservation: Reservation, settings: DoorSettings
) -> Accepted:
    """Pass an OTLP request to ``ingest``, and reserve memory for its objects.

    Raises :class:`TooMany`, :class:`Malformed`, and errors of ``ingest`` and ``reservation.grow``.
    """
    if len(request) <= _LARGE:
        try:
            return await signal.store(ingest, request, False)
        except Dense:
            pass  # rare, and raised before any data is stored, so ordinary requests have no cost
    await _weigh(signal.kind, request, reservation, settings, weight.resources_and_items)
    return await signal.store(ingest, request, True)


async def weigh_submission(request: bytes, reservation: Reservation, settings: DoorSettings) -> bool:
    """Return whether a ``SubmitTracesRequest`` is large. Reserves and raises like :func:`store`."""
    if len(request) <= _LARGE_SUBMISSION:
        return False
    upper = partial(weight.upper_items, kind=weight.SUBMISSION, limit=settings.max_items)
    items = await _weigh(weight.SUBMISSION, request, reservation, settings, upper)
    return len(request) > _LARGE or items > _LARGE_ITEMS


async def _weigh(
    kind: weight.RequestKind,
    request: bytes,
    reservation: Reservation,
    settings: DoorSettings,
    quickly: Callable[[bytes], int],
) -> int:
    try:
        if len(request) > _SCANNED_FROM:
            reservation.grow(_COPIES * len(request))
            items = await aside(weight.estimate, request, kind, settings.max_items)
        else:
            items = quickly(request)
    except weight.BrokenBytesError as error:
        raise Malformed(f"not a protobuf request: {error}") from None
    if items > settings.max_items:
        # Counting ends at the limit: how many there are is not known, and not worth knowing.
        raise TooMany(
            f"{len(request)} bytes hold more than {settings.max_items} items: spans or records, resources and scopes, "
            "and a tenth for each attribute, value, event or link; send smaller batches"
        )
    reservation.grow(items * _ITEM_BYTES)
    return items
