"""Splits OTLP requests by trace without decoding attributes.

Parsing returns raw slices, so each trace becomes a valid OTLP chunk. The real schema is parsed for validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from operator import attrgetter
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel.model.raw import MAX_TIME
from pandaeval_otel.wire.bounds import LOG, Room, outline, within
from pandaeval_otel.wire.fragments import DenseError, Fragment, Item, MalformedOtlpError, Split
from pandaeval_otel.wire.labels import TYPE, is_label
from pandaeval_otel.wire.own_output import is_own_record, is_own_span
from pandaeval_otel.wire.skeleton import Head, Request
from pandaeval_otel.wire.weight import counted

OWN_SCOPE = "pandaeval.evaluation"
"""Scope of the collector's own output, which is counted and ignored (:mod:`own_output`)."""

_Place = tuple[int, int]
"""Indices of a resource and its scope."""
_KNOWN_REMOTE = 0x300  # "has is_remote" and "is_remote"
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_MOST_BYTES = 1 << 25
"""Maximum size of a span or log record."""
_BY_WHOM = TYPE.encode()
"""Bytes in every label and in few other records, which then need no attribute search."""


def split_traces(request: bytes, at_most: int = 0) -> Split:
    """Split an ``ExportTraceServiceRequest`` by trace id.

    Rejects spans without valid ids, or larger than 32 MiB. Raises :class:`MalformedOtlpError`, and
    :class:`DenseError` above ``at_most`` resources, scopes and spans (0: no limit).
    """
    split, full, request, skeleton = _opened(ExportTraceServiceRequest, Span, request, at_most)
    builder = _Builder(split, logs=False)
    scopes = _scopes(full.resource_spans, ("scope_spans", "spans"), skeleton, split, is_own_span)
    for place, spans, raw_spans in scopes:
        # Straight-line code that looks up once what neighbours share: most of a span's cost on receipt.
        trace_id, is_trace = b"", False
        for span, raw in zip(spans, raw_spans, strict=True):
            started, own_trace = span.start_time_unix_nano, span.trace_id
            if own_trace != trace_id or not trace_id:
                trace_id = own_trace
                is_trace = len(trace_id) == 16 and trace_id != _NO_TRACE
                fragment, kept = builder.at(trace_id, place, started)
                items = fragment.items
            span_id, parent = span.span_id, span.parent_span_id
            if not is_trace or len(span_id) != 8 or span_id == _NO_SPAN:
                builder.reject("span", span.name, "trace id or span id is missing or of the wrong length")
                continue
            if len(raw) > _MOST_BYTES:
                builder.reject("span", span.name, f"{len(raw)} bytes are more than {_MOST_BYTES}")
                continue
            remote = span.flags & _KNOWN_REMOTE == _KNOWN_REMOTE
            items.append(Item(span_id, b"" if parent == _NO_SPAN else parent, remote))
            kept.append(raw)
            if started < fragment.start_ns:
                fragment.start_ns = started
    return builder.finish(request, skeleton)


def split_logs(request: bytes, at_most: int = 0) -> Split:
    """Split an ``ExportLogsServiceRequest`` by trace id.

    Keeps records with a trace and an event name, structured body or ``gen_ai.*`` attribute. Counts others and human
    verdicts as ``ignored``. Raises as :func:`split_traces`.
    """
    split, full, request, skeleton = _opened(ExportLogsServiceRequest, LogRecord, request, at_most)
    builder = _Builder(split, logs=True)
    scopes = _scopes(full.resource_logs, ("scope_logs", "log_records"), skeleton, split, is_own_record)
    for place, records, raw_records in scopes:
        for record, raw in zip(records, raw_records, strict=True):
            names_trace = len(record.trace_id) == 16 and record.trace_id != _NO_TRACE
            if not names_trace or not _is_event(record) or (_BY_WHOM in raw and is_label(record)):
                split.ignored += 1
            elif len(raw) > _MOST_BYTES:
                builder.reject("log record", record.event_name, f"{len(raw)} bytes are more than allowed")
            else:
                fragment, kept = builder.at(record.trace_id, place)
                fragment.items.append(_log_item(record))
                kept.append(raw)
    return builder.finish(request, skeleton)


def _log_item(record: Any) -> Item:
    return Item(b"L" + hash_and_strip(record)[:8], record.span_id)


def _scopes(
    resources: Iterable[Any], names: tuple[str, str], skeleton: Any, split: Split, is_own: Callable[[Any], bool]
) -> Iterator[tuple[_Place, Any, Any]]:
    scopes, items = map(attrgetter, names)
    for resource_index, resource in enumerate(resources):
        outlines = skeleton.resourced[resource_index].scoped
        for scope_index, scoped in enumerate(scopes(resource)):
            parsed, raw = items(scoped), outlines[scope_index].items
            split.decoded += len(raw)
            if scoped.scope.name == OWN_SCOPE:
                parsed, raw = _not_own(parsed, raw, is_own, split)
            yield (resource_index, scope_index), parsed, raw


def hash_and_strip(message: Any) -> bytes:
    """Hash a log record or span in 16 bytes, without fields that transports change: flags, trace state and observation
    time.
    """
    if message.flags:
        message.flags = 0
    if type(message) is LogRecord:
        message.observed_time_unix_nano = 0
    elif message.trace_state:
        message.trace_state = ""
    # The fastest hash available: processors have instructions for it.
    return sha256(message.SerializeToString(deterministic=True)).digest()[:16]


def _opened(kind: Any, item: Any, request: bytes, at_most: int) -> tuple[Split, Any, bytes, Any]:
    """Parse a request.

    Invalid items are counted as rejected. Raises :class:`MalformedOtlpError` and :class:`DenseError`.
    """
    split = Split([])
    try:
        skeleton = Request.FromString(request)
        if at_most and counted(skeleton) > at_most:
            raise DenseError
        try:
            return split, kind.FromString(request), request, skeleton
        except DecodeError:
            request, bad, why = sifted(request, item)
            if not bad:
                raise
        split.decoded = split.rejected = bad
        split.message = f"{bad} of a kind that is no {item.DESCRIPTOR.full_name}: {why}"
        return split, kind.FromString(request), request, Request.FromString(request)
    except DecodeError as error:
        raise MalformedOtlpError(f"not a protobuf {kind.DESCRIPTOR.name}: {error}") from error


def _not_own(items: Any, raw: Any, is_own: Callable[[Any], bool], split: Split) -> tuple[list[Any], list[bytes]]:
    kept = [pair for pair in zip(items, raw, strict=True) if not is_own(pair[0])]
    split.own_output += len(items) - len(kept)
    split.claimed += sum(1 for item, _ in kept if type(item) is Span or not is_label(item))
    return [item for item, _ in kept], [data for _, data in kept]


def _is_event(record: Any) -> bool:
    if record.event_name or record.body.HasField("kvlist_value"):
        return True
    return any(pair.key == "event.name" or pair.key.startswith("gen_ai.") for pair in record.attributes)


class _Builder:
    def __init__(self, split: Split, logs: bool) -> None:
        self._split, self._logs = split, logs
        self._fragments: dict[bytes, Fragment] = {}
        self._kept: dict[bytes, list[tuple[_Place, list[bytes]]]] = {}

    def reject(self, kind: str, name: str, why: str) -> None:
        self._split.rejected += 1
        if not self._split.message:
            self._split.message = f"{kind} {name!r}: {why}"

    def at(self, trace_id: bytes, place: _Place, start_ns: int = 0) -> tuple[Fragment, list[bytes]]:
        fragment = self._fragments.get(trace_id)
        if fragment is None:
            fragment = self._fragments[trace_id] = Fragment(trace_id, self._logs, start_ns=start_ns)
            self._kept[trace_id] = []
        places = self._kept[trace_id]
        if not places or places[-1][0] != place:
            places.append((place, []))
        return fragment, places[-1][1]

    def finish(self, request: bytes, skeleton: Any) -> Split:
        split = self._split
        split.fragments = [fragment for fragment in self._fragments.values() if fragment.items]
        whole = len(split.fragments) == 1 and len(split.fragments[0].items) == split.decoded
        if whole:  # and few empty resources and scopes beside its items
            whole = sum(1 + len(resourced.scoped) for resourced in skeleton.resourced) <= 2 * split.decoded
        for fragment in split.fragments:
            fragment.start_ns = min(fragment.start_ns, MAX_TIME)
            if whole:
                fragment.chunk = request
                continue
            chunk = Request()
            resource_at = -1
            for (resource, scope), kept in self._kept[fragment.trace_id]:
                if resource != resource_at:
                    source = skeleton.resourced[resource]
                    target = chunk.resourced.add(resource=source.resource, schema_url=source.schema_url)
                    resource_at = resource
                origin = source.scoped[scope]
                target.scoped.add(scope=origin.scope, schema_url=origin.schema_url, items=kept)
            fragment.chunk = bytes(chunk.SerializeToString())
        return split


def read_chunk(chunk: bytes, logs: bool) -> Iterator[Item]:
    """Yield the items of a stored chunk, item by item to bound memory. Raises :class:`MalformedOtlpError`."""
    room = Room()
    try:
        for resourced in outline(chunk).resourced:
            for scoped in resourced.scoped:
                for raw in scoped.items:
                    yield _log_item(LogRecord.FromString(within(raw, LOG, room))) if logs else _span_item(raw)
    except (ValueError, DecodeError) as error:
        raise MalformedOtlpError(str(error)) from error


def _span_item(raw: bytes) -> Item:
    head = Head.FromString(raw)
    parent, remote = head.parent_span_id, head.flags & _KNOWN_REMOTE == _KNOWN_REMOTE
    return Item(head.span_id, b"" if parent == _NO_SPAN else parent, remote)


def sifted(request: bytes, item: Any) -> tuple[bytes, int, str]:
    """Remove invalid items. Returns the request, their number and the first error. Raises ``DecodeError``."""
    outline = Request.FromString(request)
    bad, why = 0, ""
    for resourced in outline.resourced:
        for scoped in resourced.scoped:
            kept = []
            for raw in scoped.items:
                try:
                    item.FromString(raw)
                except DecodeError as error:
                    bad += 1
                    why = why or str(error)
                else:
                    kept.append(raw)
            if len(kept) < len(scoped.items):
                del scoped.items[:]
                scoped.items.extend(kept)
    return bytes(outline.SerializeToString()), bad, why
