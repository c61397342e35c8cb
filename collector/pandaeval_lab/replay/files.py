"""Reads stored telemetry: OTLP/JSON lines or length-delimited protobuf, plain or compressed, traces and logs; and what
Jaeger and Tempo answer. Results as JSON lines are read back, too.

A file is read request by request, so memory does not grow with it.

What Jaeger makes of OTLP in its own JSON is turned back: tags that stand for a span's kind, status and scope, logs that
stand for its events. Times have microseconds there. Lists in attributes stay the JSON text that Jaeger keeps of them.
"""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import orjson
import zstandard

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import open_given
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_otel.wire.fragments import MalformedOtlpError
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json, logs_from_json, traces_from_json
from pandaeval_otel.wire.splitting import split_logs, split_traces

MAX_REQUEST_BYTES = 256 << 20
_REQUEST_TAG = b"\x0a"
_BYTE_ORDER = b"\xef\xbb\xbf"
_UNFINISHED = b"{[,:"
"""The last bytes of a first line by which its document goes on in the next one."""
_NEITHER, _LOOK = "neither OTLP/JSON lines nor length-delimited OTLP protobuf", 4096
_OPENERS: dict[bytes, Callable[[io.BufferedReader], object]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda raw: zstandard.ZstdDecompressor().stream_reader(raw),
    b"BZh": bz2.BZ2File,
}
"""What decompresses a file, by its first bytes."""


class UnusableInputError(Exception):
    """A file from which nothing can be read; the message names it, what is wrong and what would do."""


@dataclass(frozen=True, slots=True)
class Request:
    """One export request of a file: protobuf bytes, and whether they are log records."""

    logs: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    """A part of a file that could not be read: its place and why."""

    place: str
    reason: str


class Input:
    """One input file, ``-`` for standard input. ``read_bytes`` counts bytes consumed on disk, for progress bars;
    ``notes``: what people should be told once the file is read."""

    notes: Sequence[str] = ()

    def __init__(self, name: str) -> None:
        self.name, self.size = name, 0
        if name == "-":
            self._raw: BinaryIO = sys.stdin.buffer
            return
        path = Path(name)
        if path.is_dir():
            raise UnusableInputError(f"{name}: is a directory; give files, for instance {name}/*.jsonl")
        try:
            self._raw = open_given(path)
        except OSError as error:
            store = "a trace store such as jaeger://HOST:16686?service=NAME"
            cure = f"name a file of traces, - for standard input, or {store}"
            raise UnusableInputError(f"{name}: {error.strerror or error}; {cure}") from error
        self.size = path.stat().st_size

    @property
    def read_bytes(self) -> int:
        try:
            return self._raw.tell()
        except (OSError, ValueError):
            return 0

    def close(self) -> None:
        """Closes the file unread."""
        self._raw.close()

    def requests(self) -> Iterator[Request | BadLine]:
        """Yields every request, or a :class:`BadLine` for one that is unreadable. Raises
        :class:`UnusableInputError`."""
        with self._raw:
            raw = self._raw
            stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
            head = stream.peek(6)[:6]
            if opener := next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None):
                stream = io.BufferedReader(cast(io.RawIOBase, opener(stream)))
            try:
                if stream.peek(3)[:3] == _BYTE_ORDER:
                    stream.read(3)
                blank_lines = 0
                while (head := stream.peek(64)[:64]) and not head.strip() and len(head) > 1:
                    blank_lines += stream.read(len(head)).count(b"\n")
                if not head.strip():
                    raise UnusableInputError(f"{self.name}: the file is empty")
                # Protobuf may begin with a line feed too, but control characters follow soon.
                if head.lstrip()[:1] in (b"{", b"[") and _are_words(head):
                    yield from _json_lines(stream, self.name, blank_lines)
                else:
                    yield from _protobuf(stream, self.name)
            except (EOFError, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile, OSError) as error:
                yield BadLine(self.name, f"the compressed data ends early or is damaged: {error}")


def _json_lines(stream: io.BufferedReader, name: str, number: int) -> Iterator[Request | BadLine]:
    """Yields one request a line; a file that is one document over many lines, or an array of requests, is read whole.
    ``number``: of lines before."""
    first = True
    while line := stream.readline(MAX_REQUEST_BYTES):
        number += 1
        text = line.strip()
        if not text:
            continue
        begins, first = first, False
        if begins and text[-1] in _UNFINISHED:
            yield from _document(line + stream.read(MAX_REQUEST_BYTES), name)
            return
        yield from _document(text, f"{name}:{number}")


def _document(text: bytes, place: str) -> Iterator[Request | BadLine]:
    try:
        decoded = decode_json(text)
    except BadOtlp as error:
        yield BadLine(place, str(error))
        return
    for document in decoded if isinstance(decoded, list) else [decoded]:
        if not isinstance(document, dict):
            yield BadLine(place, "not an OTLP request (a JSON object with resourceSpans or resourceLogs)")
            continue
        try:
            has_spans = "resourceSpans" in document or "resource_spans" in document
            has_logs = "resourceLogs" in document or "resource_logs" in document
            if has_spans:
                yield Request(False, traces_from_json(document).SerializeToString())
            if has_logs:
                yield Request(True, logs_from_json(document).SerializeToString())
            if has_spans or has_logs:
                continue
            if other := from_jaeger(document) or from_envelope(document):
                yield Request(False, traces_from_json(other).SerializeToString())
            elif "resourceMetrics" not in document and "resource_metrics" not in document:
                yield BadLine(place, "no OTLP traces or logs here (expected resourceSpans or resourceLogs)")
        except BadOtlp as error:
            yield BadLine(place, str(error))


def _protobuf(stream: io.BufferedReader, name: str) -> Iterator[Request | BadLine]:
    """Yields requests with a length in front: four bytes big-endian (the OpenTelemetry Collector's file exporter) or a
    varint (protobuf's own convention); a file that is one request without any length will do too."""
    if stream.peek(1)[:1] == _REQUEST_TAG:
        # The first byte of a request itself. As a length it would mean ten bytes, too few to hold a span.
        yield _classified(stream.read(MAX_REQUEST_BYTES), name)
        return
    number = 0
    while head := stream.read(4):
        number += 1
        size, skip = _length(head)
        if not 0 < size <= MAX_REQUEST_BYTES:
            yield BadLine(f"{name}: request {number}", _NEITHER)
            return
        begun = head[skip:]
        data = begun + stream.read(size - len(begun))
        if len(data) < size:
            why = _NEITHER if number == 1 and _are_words(head + data[:_LOOK]) else "the file ends early"
            yield BadLine(f"{name}: request {number}", why)
            return
        yield _classified(data, f"{name}: request {number}")


def _are_words(data: bytes) -> bool:
    """Returns whether bytes are text and no protobuf, which has control characters among its first bytes."""
    return all(byte >= 32 or byte in b"\t\r\n" for byte in data)


def _length(head: bytes) -> tuple[int, int]:
    """Reads the length that stands in front of a request, and how many bytes the length takes; 0 for nonsense."""
    if head[0] == 0 and len(head) == 4:
        return int.from_bytes(head, "big"), 4
    size = shift = 0
    for index, byte in enumerate(head):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, index + 1
        shift += 7
    return 0, 0


def _classified(data: bytes, place: str) -> Request | BadLine:
    """Finds out whether a request holds spans or log records: only one of them has ids in the right places."""
    try:
        spans = split_traces(data)
        if spans.decoded > spans.rejected:
            return Request(False, data)
    except MalformedOtlpError as error:
        problem = str(error)
    else:
        problem = spans.message or "no spans in it"
    try:
        logs = split_logs(data)
    except MalformedOtlpError:
        return BadLine(place, problem)
    return Request(True, data) if logs.decoded > logs.rejected else BadLine(place, problem)


STDIN = "-"
_MOST_OF_A_LINE = 64 << 20
_TEXTS = ("metric", "level", "outcome")


def result_lines(path: Path | str) -> Iterator[dict[str, Any]]:
    """Yields each result of a file, ``-`` for standard input, in order; each has the texts ``metric``, ``level`` and
    ``outcome``, and a number as its ``revision`` if it has one. Raises ``UserError`` where a line is no result."""
    name = "standard input" if str(path) == STDIN else str(path)
    try:
        if str(path) == STDIN:
            yield from results_of(sys.stdin, name)
        else:
            with io.TextIOWrapper(open_given(path), encoding="utf-8-sig") as file:
                yield from results_of(file, name)
    except OSError as error:
        cure = "name what `pandaeval evaluate --format json -o FILE` wrote"
        raise UserError(f"{name} cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8: results are JSON lines, as `evaluate --format json` writes") from error


def results_of(file: TextIO, name: str) -> Iterator[dict[str, Any]]:
    """Reads results from lines of text; ``name``: what to call their source. A line that is too long comes in parts,
    which are no results."""
    for number, text in enumerate(iter(lambda: file.readline(_MOST_OF_A_LINE), ""), 1):
        if not text.strip():
            continue
        try:
            result = orjson.loads(text)
            texts = isinstance(result, dict) and all(isinstance(result.get(key), str) for key in _TEXTS)
            if not texts or not isinstance(result.get("revision"), int | None):
                raise ValueError
        except ValueError:
            cure = "`pandaeval evaluate --format json` writes such lines"
            raise UserError(one_printable_line(f"{name}, line {number}: no result; {cure}")) from None
        yield result


_SPANS = ("resourceSpans", "resource_spans")
_IDS = {"traceId": 24, "trace_id": 24, "spanId": 12, "span_id": 12, "parentSpanId": 12, "parent_span_id": 12}
"""Fields that hold ids, and how long base64 writes them: protobuf's JSON has that in place of OTLP's hex digits."""
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_CODES = {"OK": 1, "ERROR": 2}
_VALUES = {"bool": "boolValue", "int64": "intValue", "float64": "doubleValue", "binary": "bytesValue"}
_SCOPE = ("otel.scope.name", "otel.library.name"), ("otel.scope.version", "otel.library.version")
_MEANT_OTHERWISE = frozenset(
    {"span.kind", "otel.status_code", "otel.status_description", "w3c.tracestate", "internal.span.format"}
).union(*_SCOPE)
Json = dict[str, Any]


def from_envelope(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the trace request in an answer of a query API, ids in hex; ``None`` if it is no such answer: OTLP/JSON in
    an envelope, as of Jaeger's v3 API (``{"result": {…}}``), and Tempo's v1 (``{"batches": […]}``) and v2 (``{"trace":
    {…}}``)."""
    for key in ("result", "trace"):
        held = document.get(key)
        if isinstance(held, dict) and any(name in held for name in (*_SPANS, "batches")):
            document = held
            break
    batches = next((document[key] for key in ("batches", *_SPANS) if key in document), None)
    return {"resourceSpans": [_plain(batch) for batch in batches]} if isinstance(batches, list) else None


def _plain(batch: Any) -> Any:
    """Converts a batch to spans as OTLP has them, also one from before scopes were called so. What is no object stays
    as it is: whoever reads the request refuses it."""
    if not isinstance(batch, dict):
        return batch
    scopes = next((batch[key] for key in ("scopeSpans", "scope_spans") if key in batch), None)
    if scopes is None:
        scopes = batch.get("instrumentationLibrarySpans", [])
    if not isinstance(scopes, list):
        return batch
    converted = []
    for held in scopes:
        spans = held.get("spans") if isinstance(held, dict) else None
        if isinstance(spans, list):
            scope = held.get("scope", held.get("instrumentationLibrary"))
            held = {"scope": scope, "spans": [_enveloped_span(span) for span in spans]}
        converted.append(held)
    return {"resource": batch.get("resource"), "scopeSpans": converted}


def _enveloped_span(span: Any) -> Any:
    if not isinstance(span, dict):
        return span
    converted = dict(span)
    for key, length in _IDS.items():
        if isinstance(id_ := span.get(key), str) and len(id_) == length:
            with contextlib.suppress(ValueError):
                converted[key] = base64.b64decode(id_, validate=True).hex()
    if isinstance(links := span.get("links"), list):
        converted["links"] = [_enveloped_span(link) for link in links]
    return converted


def from_jaeger(document: Mapping[str, Any]) -> Json | None:
    """Converts a document to a trace request, each span with resource and scope of its own; ``None`` if it is no answer
    of Jaeger. Raises :class:`BadOtlp` for one that is damaged."""
    traces = document.get("data")
    if not isinstance(traces, list) or not all(isinstance(each, dict) and "spans" in each for each in traces):
        return None
    resources: list[Json] = []
    try:
        for trace in traces:
            processes = trace.get("processes") or {}
            for span in trace["spans"]:  # a resource for each, whose scope is among its tags
                process = span.get("process") or processes.get(span.get("processID")) or {}
                tags = {tag["key"]: tag for tag in span.get("tags") or ()}
                service = {"key": "service.name", "value": {"stringValue": process.get("serviceName") or ""}}
                others = [_attribute(tag) for tag in process.get("tags") or () if tag["key"] != "service.name"]
                name, version = (next((_text(tags[key]) for key in keys if key in tags), "") for keys in _SCOPE)
                scope = {"scope": {"name": name, "version": version}, "spans": [_span(span, tags)]}
                resources.append({"resource": {"attributes": [service, *others]}, "scopeSpans": [scope]})
        return {"resourceSpans": resources}
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadOtlp(f"not as Jaeger writes traces: {type(error).__name__}: {error}") from None


def _span(span: Json, tags: Mapping[str, Json]) -> Json:
    trace_id, start = _trace_id(span), round(span["startTime"])
    references = span.get("references") or []
    parents = [each for each in references if each.get("refType") == "CHILD_OF" and _trace_id(each) == trace_id]
    code = _CODES.get(_text(tags.get("otel.status_code")), 0)
    broken = str(tags.get("error", {}).get("value")).lower() == "true"
    hidden = {*_MEANT_OTHERWISE, "error"} if broken else _MEANT_OTHERWISE
    events = []
    for log in span.get("logs") or ():
        fields = log.get("fields") or []
        name = next((_text(each) for each in fields if each["key"] == "event"), "")
        others = [_attribute(each) for each in fields if each["key"] != "event"]
        events.append({"timeUnixNano": round(log["timestamp"]) * 1000, "name": name, "attributes": others})
    return {
        "traceId": trace_id,
        "spanId": _span_id(span["spanID"]),
        "parentSpanId": _span_id(parents[0]["spanID"] if parents else span.get("parentSpanID") or ""),
        "name": span["operationName"],
        "kind": _KINDS.get(_text(tags.get("span.kind")), 1),
        "traceState": _text(tags.get("w3c.tracestate")),
        "startTimeUnixNano": start * 1000,
        "endTimeUnixNano": (start + round(span.get("duration") or 0)) * 1000,
        "attributes": [_attribute(tag) for tag in span.get("tags") or () if tag["key"] not in hidden],
        "events": events,
        "links": [
            {"traceId": _trace_id(each), "spanId": _span_id(each["spanID"])}
            for each in references
            if each not in parents[:1]
        ],
        "status": {"code": code or (2 if broken else 0), "message": _text(tags.get("otel.status_description"))},
    }


def _attribute(tag: Json) -> Json:
    kind = _VALUES.get(tag.get("type") or "", "stringValue")
    value = tag["value"]
    return {"key": tag["key"], "value": {kind: value if kind != "stringValue" else _text(tag)}}


def _text(tag: Json | None) -> str:
    value = None if tag is None else tag.get("value")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _trace_id(held: Json) -> str:
    """Returns the trace id with the leading zeros that some versions leave out."""
    return str(held["traceID"]).zfill(32)


def _span_id(text: str) -> str:
    return text.zfill(16) if text else ""
