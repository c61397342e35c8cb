"""Reads stored traces and logs, request by request: OTLP/JSON lines, length-delimited protobuf, and answers of Jaeger
and Tempo.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from pandaeval_collector.base.untrusted.user_files import open_given
from pandaeval_lab.replay.query_answers import from_envelope
from pandaeval_otel.wire.fragments import MalformedOtlpError
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json, logs_from_json, traces_from_json
from pandaeval_otel.wire.splitting import split_logs, split_traces

MAX_REQUEST_BYTES = 256 << 20
_SPANS = frozenset({"resourceSpans", "resource_spans"})
_LOGS = frozenset({"resourceLogs", "resource_logs"})
_OTHERS = _LOGS | {"resourceMetrics", "resource_metrics"}
_REQUEST_TAG = b"\x0a"
_BYTE_ORDER = b"\xef\xbb\xbf"
_UNFINISHED = b"{[,:"
"""Last bytes of a first line whose document continues on the next line."""
_NEITHER, _LOOK = "neither OTLP/JSON lines nor length-delimited OTLP protobuf", 4096
_OPENERS: dict[bytes, Callable[[io.BufferedReader], object]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda raw: zstandard.ZstdDecompressor().stream_reader(raw),
}
"""Decompressors of files, by first bytes."""


class UnusableInputError(Exception):
    """An unreadable file. The message has its name, the reason and the fix."""


@dataclass(frozen=True, slots=True)
class Request:
    """An export request: protobuf bytes, and whether they are log records."""

    logs: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    place: str
    reason: str


class Input:
    """An input file, ``-`` for standard input. ``read_bytes``: consumed on disk."""

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
        self._raw.close()

    def requests(self) -> Iterator[Request | BadLine]:
        """Yield every request, or a :class:`BadLine`. Raises :class:`UnusableInputError`."""
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
                # Protobuf can also begin with a line feed, but control characters follow soon.
                if head.lstrip()[:1] in (b"{", b"[") and _are_words(head):
                    yield from _json_lines(stream, self.name, blank_lines)
                else:
                    yield from _protobuf(stream, self.name)
            except (EOFError, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile, OSError) as error:
                yield BadLine(self.name, f"the compressed data ends early or is damaged: {error}")


def _json_lines(stream: io.BufferedReader, name: str, number: int) -> Iterator[Request | BadLine]:
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
        try:
            yield from _requests(document)
        except BadOtlp as error:
            yield BadLine(place, str(error))


def _requests(document: Any) -> Iterator[Request]:
    if not isinstance(document, dict):
        raise BadOtlp("not an OTLP request (a JSON object with resourceSpans or resourceLogs)")
    keys = document.keys()
    spans = document if keys & _SPANS else None
    has_logs = bool(keys & _LOGS)
    if spans is None and not has_logs:
        spans = from_envelope(document)
    if spans is not None:
        yield Request(False, traces_from_json(spans).SerializeToString())
    if has_logs:
        yield Request(True, logs_from_json(document).SerializeToString())
    if spans is None and not keys & _OTHERS:
        raise BadOtlp("no OTLP traces or logs here (expected resourceSpans or resourceLogs)")


def _protobuf(stream: io.BufferedReader, name: str) -> Iterator[Request | BadLine]:
    if stream.peek(1)[:1] == _REQUEST_TAG:
        # The first byte of a request. As a length, it would mean ten bytes, too few for a span.
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
    return all(byte >= 32 or byte in b"\t\r\n" for byte in data)


def _length(head: bytes) -> tuple[int, int]:
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
    problem = ""
    for split in (split_traces, split_logs):
        try:
            found = split(data)
        except MalformedOtlpError as error:
            problem = problem or str(error)
            continue
        if found.decoded > found.rejected:
            return Request(split is split_logs, data)
        problem = problem or found.message or "no spans in it"
    return BadLine(place, problem)
