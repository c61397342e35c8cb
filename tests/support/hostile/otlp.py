"""Attacks on the OTLP receivers and public pages."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from functools import partial

import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest
from support import labels
from support.hostile import doors, requests
from support.hostile.attack import TAKEN, Target, at_once, attack
from support.hostile.doors import Channel, call_status, half_sent, post, stalled

MILLION = 1_000_000
_WRITTEN = ("/v1/traces", "/v1/logs", "/api/v1/runs")


# -- counts before objects -------------------------------------------------------------------------------------------


@attack()
def empty_resources_over_HTTP(target: Target, scale: int) -> Iterator[str]:
    """Five million two-byte resources in 10 KB of gzip."""
    body = requests.gzipped(requests.empty_resources(1), 5 * MILLION * scale)
    yield post(target.http, body, encoding="gzip")
    yield post(target.http, body, path="/v1/logs", encoding="gzip")


@attack()
def empty_resources_within_the_size_limit(target: Target, scale: int) -> Iterator[str]:
    """As many as fit, from several senders."""
    body = requests.gzipped(requests.empty_resources(1), 8 * MILLION)
    yield from at_once([lambda: post(target.http, body, encoding="gzip")] * (4 * scale), threads=8)


@attack()
def empty_resources_over_gRPC(target: Target, scale: int) -> Iterator[str]:
    """Compressed, and uncompressed up to the limit."""
    with Channel(target.grpc) as channel:
        yield channel.call(requests.empty_resources(5 * MILLION * scale), compressed=True)
        yield channel.call(requests.empty_resources(5 * MILLION))
        yield channel.call(requests.empty_resources(5 * MILLION), doors.LOGS)


@attack()
def empty_scopes_and_spans(target: Target, scale: int) -> Iterator[str]:
    for make in (requests.empty_scopes, requests.empty_spans):
        body = requests.squeeze(make(5 * MILLION * scale))
        yield post(target.http, body, encoding="gzip")
        yield post(target.http, body, path="/v1/logs", encoding="gzip")
        within = make(5 * MILLION)
        with Channel(target.grpc) as channel:
            yield channel.call(within)


@attack()
def empty_objects_in_JSON(target: Target, scale: int) -> Iterator[str]:
    """A million ``{}`` on each level."""
    for head, tail in (
        ('{"resourceSpans":[', "{}]}"),
        ('{"resourceSpans":[{"scopeSpans":[', "{}]}]}"),
        ('{"resourceSpans":[{"scopeSpans":[{"spans":[', "{}]}]}]}"),
    ):
        text = head + "{}," * (MILLION * scale) + tail
        yield post(target.http, requests.squeeze(text.encode()), media=doors.JSON, encoding="gzip")


@attack()
def empty_completed_traces(target: Target, scale: int) -> Iterator[str]:
    nested = CompletedTrace(trace_id=os.urandom(16), spans=requests.empty_resources(5 * MILLION))
    with Channel(target.grpc) as channel:
        yield channel.call(b"\x0a\x00" * (5 * MILLION), doors.SUBMIT)
        yield channel.call(b"\x0a\x00" * (5 * MILLION * scale), doors.SUBMIT, compressed=True)
        yield channel.call(SubmitTracesRequest(traces=[nested]).SerializeToString(), doors.SUBMIT)


@attack()
def many_small_spans(target: Target, scale: int) -> Iterator[str]:
    chance = random.Random(scale)
    body = b"".join(
        requests.field(2, Span(trace_id=chance.randbytes(16), span_id=chance.randbytes(8)).SerializeToString())
        for _ in range(100_000)
    )
    request = requests.field(1, requests.service() + requests.field(2, body))
    yield from at_once([lambda: post(target.http, request)] * (2 * scale), threads=4)


# -- poison ----------------------------------------------------------------------------------------------------------


@attack()
def a_span_of_empty_events(target: Target, scale: int) -> Iterator[str]:
    for number in (requests.EVENTS, requests.LINKS, requests.ATTRIBUTES):
        empty = requests.field(number, b"")
        body = requests.one_span(extra=empty * (12 * MILLION * scale))
        yield post(target.http, requests.squeeze(body), encoding="gzip")
        yield post(target.http, requests.squeeze(requests.one_span(extra=empty * (7 * MILLION))), encoding="gzip")
        for items in (1_000, 20_000, 60_000):
            yield post(target.http, requests.one_span(extra=empty * items))


@attack()
def an_attribute_of_many_values(target: Target, scale: int) -> Iterator[str]:
    for kind in (5, 6):  # array_value, kvlist_value
        for items in (50_000, 7 * MILLION * min(scale, 3)):
            held = requests.field(kind, requests.field(1, b"") * items)
            pair = requests.field(1, b"payload") + requests.field(2, held)
            body = requests.one_span(extra=requests.field(requests.ATTRIBUTES, pair))
            yield post(target.http, requests.squeeze(body), encoding="gzip")
    for depth in (50, 95, 5_000 * scale):
        nested = requests.field(1, b"x")
        for _ in range(depth):
            nested = requests.field(5, requests.field(1, nested))
        pair = requests.field(1, b"payload") + requests.field(2, nested)
        yield post(target.http, requests.one_span(extra=requests.field(requests.ATTRIBUTES, pair)))


@attack()
def a_trace_of_many_events(target: Target, scale: int) -> Iterator[str]:
    """Millions of events over spans within their limits."""
    trace_id = os.urandom(16)
    events = requests.field(requests.EVENTS, b"") * 1_000
    for _ in range(40 * scale):
        spans = b"".join(
            requests.field(
                2,
                Span(trace_id=trace_id, span_id=os.urandom(8), parent_span_id=b"parent__").SerializeToString() + events,
            )
            for _ in range(50)
        )
        yield post(target.http, requests.field(1, requests.service() + requests.field(2, spans)))


# -- names and series ------------------------------------------------------------------------------------------------


@attack()
def names_of_a_megabyte(target: Target, scale: int) -> Iterator[str]:
    for number in range(scale):
        long = f"{number}" + "x" * MILLION
        for names in ((long, "shop", ""), ("helper", long, ""), ("helper", "shop", long)):
            yield post(target.http, requests.squeeze(requests.named(*names)), encoding="gzip")
            yield post(target.http, requests.squeeze(requests.named(*names)), encoding="gzip")


@attack()
def names_times_names(target: Target, scale: int) -> Iterator[str]:
    chance = random.Random(scale)
    with Channel(target.grpc) as channel:
        for _ in range(8 * scale):
            parts = [
                requests.named(
                    f"agent-{chance.randrange(200)}", f"svc-{chance.randrange(100)}", f"env-{chance.randrange(20)}"
                )
                for _ in range(500)
            ]
            yield channel.call(b"".join(parts))


@attack()
def scrapes_at_once(target: Target, scale: int) -> Iterator[str]:
    yield from at_once([lambda: doors.get(target.health, "/metrics")] * (10 * scale), threads=20)


# -- numbers ---------------------------------------------------------------------------------------------------------


@attack()
def extreme_numbers(target: Target, scale: int) -> Iterator[str]:
    extremes: tuple[dict[str, int], ...] = (
        {"start_time_unix_nano": 2**63},
        {"end_time_unix_nano": 2**64 - 1},
        {"start_time_unix_nano": 2**64 - 1, "end_time_unix_nano": 2**64 - 1},
        {"start_time_unix_nano": 0, "end_time_unix_nano": 0},
        {"kind": 2**31 - 1},
        {"flags": 2**32 - 1},
        {"dropped_attributes_count": 2**32 - 1},
    )
    with Channel(target.grpc) as channel:
        for number in range(60 * scale):
            odd = extremes[number % len(extremes)]
            parts = [requests.one_span(**(odd if index == 50 else {})) for index in range(100)]
            yield channel.call(b"".join(parts))


@attack()
def text_that_is_none(target: Target, scale: int) -> Iterator[str]:
    """Invalid UTF-8, lone surrogates and infinite numbers."""
    broken = requests.one_span(extra=requests.field(5, b"\xff\xfe"))
    surrogate = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\ud800"}]}]}]})
    endless = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":' + "9" * 4_000 + "}]}]}]}"
    exponent = endless.replace("9" * 4_000, "1e400")
    for _ in range(scale):
        yield post(target.http, broken)
        for text in (surrogate, endless, exponent, "[" * 100_000, '{"a":' * 100_000):
            yield post(target.http, text.encode(), media=doors.JSON)


# -- connections -----------------------------------------------------------------------------------------------------


@attack()
def large_messages(target: Target, scale: int) -> Iterator[str]:
    body = bytes(60 * MILLION)
    yield from _calls_at_once(target, body, 40 * scale)


@attack()
def largest_messages(target: Target, scale: int) -> Iterator[str]:
    body = requests.one_span(extra=requests.field(5, b"x" * (15 * MILLION)))
    yield from _calls_at_once(target, body, 40 * scale)


@attack()
def half_sent_streams(target: Target, scale: int) -> Iterator[str]:
    found: list[str] = []

    def one_connection() -> None:
        found.extend(half_sent(target.grpc, 10 * scale, 15 * MILLION, 15.0))

    threads = [threading.Thread(target=one_connection) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from found


@attack()
def slow_heads(target: Target, scale: int) -> Iterator[str]:
    head = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\nx-slow: "
    for address in (target.http, target.health):
        yield from stalled(address, [head] * (200 * scale), 15.0)


@attack()
def slow_bodies(target: Target, scale: int) -> Iterator[str]:
    head = (
        b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
        b"content-length: 15000000\r\n\r\n"
    )
    yield from stalled(target.http, [head + bytes(10)] * (4 * scale), 20.0)
    yield from stalled(target.http, [head + bytes(14 * MILLION)] * (4 * scale), 20.0)


@attack()
def idle_connections(target: Target, scale: int) -> Iterator[str]:
    for address in (target.http, target.grpc, target.health):
        yield from stalled(address, [b""] * (300 * scale), 2.0)


@attack()
def silent_connections_over_gRPC(target: Target, scale: int) -> Iterator[str]:
    """They occupy all places until a timeout."""
    with doors.silent(target.grpc, 1500 * scale):
        until = time.monotonic() + 10
        answer = ""
        while answer != "gRPC OK" and time.monotonic() < until:
            with Channel(target.grpc) as channel:
                answer = channel.call(b"")
        yield answer if answer == "gRPC OK" else doors.NO_ANSWER


@attack()
def labels_by_the_thousand(target: Target, scale: int) -> Iterator[str]:
    records = [labels.event(score=1.0, label="pass", trace=os.urandom(16)) for _ in range(1000)]
    for record in records:
        record.time_unix_nano = 2**63
    request = labels.request(*records).SerializeToString()
    with Channel(target.grpc) as channel:
        for _ in range(110 * scale):
            call = channel.begin(request, doors.LOGS)
            answer = call_status(call)
            if answer == "gRPC OK":
                partial = ExportLogsServiceResponse.FromString(call.result()).partial_success
                answer = "gRPC OK, all rejected" if partial.rejected_log_records == len(records) else TAKEN
            yield answer


@attack()
def bombs(target: Target, scale: int) -> Iterator[str]:
    zeros = requests.gzipped(b"\0", 1000 * MILLION * min(scale, 4))
    yield post(target.http, zeros, encoding="gzip")
    yield post(target.http, zeros, media=doors.JSON, encoding="gzip")
    yield post(target.http, zstandard.compress(bytes(200 * MILLION)), encoding="zstd")


@attack()
def empty_frames(target: Target, scale: int) -> Iterator[str]:
    """Empty gzip members and zstd frames in 15 MB."""
    skippable = bytes.fromhex("502a4d1800000000")
    for frame, encoding in ((gzip.compress(b""), "gzip"), (zstandard.compress(b""), "zstd"), (skippable, "zstd")):
        body = frame * (15 * MILLION // len(frame))
        yield from at_once([partial(post, target.http, body, encoding=encoding)] * scale)


# -- foreign pages ---------------------------------------------------------------------------------------------------


@attack()
def pages_of_others(target: Target, scale: int) -> Iterator[str]:
    """Browser requests from foreign origins and rebound names."""
    named = ["Host: evil.example", "Host: [::1].evil.example", "Host: localhost:80@evil.example"]
    named += ["Host: localhost\r\nOrigin: https://evil.example", "Host: localhost\r\nHost: evil.example"]
    head = "POST {path} HTTP/1.1\r\n{named}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    asked = {path: [head.format(path=path, named=each).encode() for each in named] for path in _WRITTEN}
    asked["/metrics"] = [f"GET /metrics HTTP/1.1\r\n{each}\r\n\r\n".encode() for each in (*named[:3], named[-1])]
    for path, each in asked.items():
        for answer in stalled(target.http if path in _WRITTEN else target.health, each * (20 * scale), 10.0):
            yield answer if answer in {"HTTP 400", "HTTP 403", "HTTP 421"} else TAKEN


# -- readers ---------------------------------------------------------------------------------------------------------


@attack()
def answers_that_nobody_reads(target: Target, scale: int) -> Iterator[str]:
    """Many unread requests for a 13.5 MB trace."""
    trace_id = os.urandom(16)
    for _ in range(9):
        yield post(target.http, requests.wordy(trace_id, 1_500_000))
    path = f"/api/v1/traces/{trace_id.hex()}"
    while (found := doors.get(target.http, path)) == "HTTP 404":
        time.sleep(0.5)
    yield found
    yield from doors.unread(target.http, path, 60 * scale, 30.0)


# -- evidence --------------------------------------------------------------------------------------------------------


@attack()
def claims_to_be_an_evaluation(target: Target, scale: int) -> Iterator[str]:
    own = requests.field(1, requests.field(1, b"pandaeval.evaluation"))
    for _ in range(20 * scale):
        span = requests.field(2, requests.agent_span().SerializeToString())
        yield post(target.http, requests.field(1, requests.service() + requests.field(2, own + span)))


def _calls_at_once(target: Target, body: bytes, number: int) -> Iterator[str]:
    channels = [Channel(target.grpc) for _ in range(10)]
    try:
        for start in range(0, number, 40):  # bounds the memory of this process
            calls = [channels[i % 10].begin(body) for i in range(start, min(start + 40, number))]
            yield from map(call_status, calls)
    finally:
        for channel in channels:
            channel.__exit__()
