"""Randomly corrupted requests, and a fast client."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest
from support.hostile.doors import SUBMIT
from support.made_traces import Composer
from support.senders import to_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_MEDIA = (PROTOBUF, JSON, "text/plain", "application/json; charset=utf-16", "")
_ENCODINGS = ("", "gzip", "zstd", "deflate", "br", "gzip, gzip")
_NASTY = (
    b"\xff" * 10,  # a varint that is too long
    b"\x0a\xff\xff\xff\xff\x0f",  # a length of 4 GiB
    b"\x0b" * 100,  # groups without end
    b"\xed\xa0\x80",  # a lone surrogate
    b"\0",
    b"\x39" + b"\xff" * 8,  # start_time_unix_nano
    b"\x41" + b"\xff" * 8,  # end_time_unix_nano
    b"1e999",
    b"-1",
    b"null",
    b"9" * 400,
    b"[[[[[[[[",
    b'"\\ud800"',
)
_RANGES: dict[int, tuple[int, ...]] = {
    FieldDescriptor.CPPTYPE_UINT64: (0, 1, 2**63 - 1, 2**63, 2**64 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1, 2**31, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), -1, 2**31 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(2**31), -1, 0, 5, 99, 2**31 - 1),
}
"""Extreme values of a field."""


@dataclass(frozen=True, slots=True)
class Shot:
    """An HTTP request, or a gRPC call if ``media`` is empty."""

    path: str
    media: str
    encoding: str
    body: bytes
    method: str = "POST"

    @property
    def is_grpc(self) -> bool:
        return self.path == SUBMIT


class Fuzzer:
    """Produces the same shots for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._composer = Composer(seed)

    def shot(self) -> Shot:
        """Return the next shot, usually with one or two errors."""
        chance = self._chance
        request = self._composer.trace().request()
        odd = chance.random() < 0.5
        if odd:  # a valid encoding with invalid content
            for _ in range(chance.randint(1, 4)):
                self._make_odd(chance.choice(request.resource_spans[0].scope_spans[0].spans))
        kind = chance.random()
        if kind < 0.1:
            spans = request.SerializeToString()
            trace_id = request.resource_spans[0].scope_spans[0].spans[0].trace_id
            trace = CompletedTrace(trace_id=trace_id, spans=self._spoilt(spans, 0.5), fragment=chance.random() < 0.3)
            return Shot(SUBMIT, "", "", self._spoilt(SubmitTracesRequest(traces=[trace]).SerializeToString(), 0.5))
        path = "/v1/traces" if kind < 0.85 else "/v1/logs"
        if chance.random() < 0.3:
            media, body = JSON, json.dumps(to_json(request)).encode()
        else:
            media, body = PROTOBUF, request.SerializeToString()
        body = self._spoilt(body, 0.2 if odd else 0.85)
        encoding = ""
        if chance.random() < 0.2:
            encoding, body = "gzip", self._spoilt(gzip.compress(body, 1), 0.2)
        if chance.random() < 0.03:
            media = chance.choice(_MEDIA)
        if chance.random() < 0.03:
            encoding = chance.choice(_ENCODINGS)
        return Shot(path, media, encoding, body)

    def _make_odd(self, span: Span) -> None:
        chance = self._chance
        field = chance.choice(span.DESCRIPTOR.fields)
        if field.cpp_type in _RANGES:
            setattr(span, field.name, chance.choice(_RANGES[field.cpp_type]))
        elif field.name in ("trace_id", "span_id", "parent_span_id"):
            setattr(span, field.name, chance.randbytes(chance.choice((0, 1, 7, 8, 9, 16, 17, 100))))
        elif field.name in ("events", "links"):
            for _ in range(chance.choice((1, 3, 2000))):
                getattr(span, field.name).add(dropped_attributes_count=2**32 - 1)
        else:
            known = span.attributes and chance.random() < 0.7
            pair = chance.choice(span.attributes) if known else span.attributes.add(key="gen_ai.tool.name")
            self._fill(pair.value, chance.randint(0, 3))

    def _fill(self, held: AnyValue, depth: int) -> None:
        chance = self._chance
        match chance.randrange(8):
            case 0:
                held.int_value = chance.choice((-(2**63), 2**63 - 1, -1, 0))
            case 1:
                held.double_value = chance.choice((math.nan, math.inf, -math.inf, 1e308, -0.0, 5e-324))
            case 2:
                held.bytes_value = chance.randbytes(9)
            case 3:
                held.bool_value = True
            case 4:
                held.Clear()
            case 5:
                held.string_value = chance.choice(
                    ("", "\0", "[[[[", '{"a":' * 300, "\u202e\x1b]0;x\x07", "9" * 5000, "null")
                )
            case 6 if depth:
                for _ in range(chance.choice((0, 1, 5))):
                    self._fill(held.array_value.values.add(), depth - 1)
            case _ if depth:
                for _ in range(chance.choice((0, 1, 5))):
                    self._fill(
                        held.kvlist_value.values.add(key=chance.choice(("", "role", "content"))).value, depth - 1
                    )

    def _spoilt(self, body: bytes, likely: float) -> bytes:
        return spoilt(body, likely, self._chance)


def spoilt(body: bytes, likely: float, chance: random.Random) -> bytes:
    """Corrupt the bytes with probability ``likely``."""
    if chance.random() > likely:
        return body
    wrong = bytearray(body)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        _spoil(wrong, chance)
    return bytes(wrong)


def _spoil(body: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(body) + 1)
    match chance.randrange(7):
        case 0 if body:
            body[at % len(body)] ^= 1 << chance.randrange(8)
        case 1:
            del body[at:]
        case 2:
            del body[at : at + chance.randrange(1, 20)]
        case 3:
            body[at:at] = chance.choice(_NASTY)
        case 4:
            body[at : at + 8] = chance.choice(_NASTY)
        case 5:
            until = at + chance.randrange(1, 400)
            body[at:at] = body[at:until] * chance.choice((1, 2, 50))
        case _:
            body[at:at] = chance.randbytes(chance.randrange(1, 9))


def post_all(address: str, shots: Sequence[Shot], together: int = 16) -> list[int]:
    """Pipeline shots over one connection; return statuses, 0 without an answer."""
    host, port = address.rsplit(":", 1)
    statuses: list[int] = []
    connection: socket.socket | None = None
    for start in range(0, len(shots), together):
        batch = shots[start : start + together]
        if connection is None:
            connection = socket.create_connection((host, int(port)), 60)
        found = _exchange(connection, batch)
        statuses += found
        if len(found) < len(batch):  # the server hung up: send the remaining shots one by one
            connection.close()
            connection = None
            for shot in batch[len(found) :]:
                with contextlib.closing(socket.create_connection((host, int(port)), 60)) as own:
                    statuses += _exchange(own, [shot]) or [0]
    if connection is not None:
        connection.close()
    return statuses


def _exchange(connection: socket.socket, shots: Sequence[Shot]) -> list[int]:
    statuses: list[int] = []
    try:
        connection.sendall(b"".join(map(_encoded, shots)))
        with connection.makefile("rb") as answers:
            for shot in shots:
                line = answers.readline()
                if not line:
                    break
                head = _head(answers)
                if shot.method != "HEAD":
                    _read_body(answers, head)
                statuses.append(int(line.split()[1]))
                if head.get(b"connection", b"").lower() == b"close":
                    break
    except OSError:
        pass
    return statuses


def _head(answers: IO[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while (header := answers.readline()) not in (b"\r\n", b""):
        name, _, value = header.partition(b":")
        found[name.lower()] = value.strip()
    return found


def _read_body(answers: IO[bytes], head: dict[bytes, bytes]) -> None:
    if head.get(b"transfer-encoding") != b"chunked":
        answers.read(int(head.get(b"content-length", 0)))
        return
    while size := int(answers.readline() or b"0", 16):
        answers.read(size + 2)
    answers.readline()


def _encoded(shot: Shot) -> bytes:
    head = f"{shot.method} {shot.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {shot.media}\r\n"
    head += "accept: application/json, text/event-stream\r\n"
    head += f"content-length: {len(shot.body)}\r\n"
    if shot.encoding:
        head += f"content-encoding: {shot.encoding}\r\n"
    return head.encode() + b"\r\n" + shot.body
