"""Requests as bytes that are cheap to send and expensive to receive."""

from __future__ import annotations

import gzip
import os
import zlib

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.wire_bytes import field

NOW_NS = 1_790_000_000 * 10**9
RESOURCE_SPANS, SCOPE_SPANS, SPANS, EVENTS, LINKS, ATTRIBUTES = 1, 2, 2, 11, 13, 9


def empty_resources(number: int) -> bytes:
    return field(RESOURCE_SPANS, b"") * number


def empty_scopes(number: int) -> bytes:
    return field(RESOURCE_SPANS, field(SCOPE_SPANS, b"") * number)


def empty_spans(number: int) -> bytes:
    return field(RESOURCE_SPANS, field(SCOPE_SPANS, field(SPANS, b"") * number))


def one_span(*, extra: bytes = b"", **fields: object) -> bytes:
    """Return a request with an agent span. ``extra``: encoded fields."""
    span = agent_span(**fields)
    return field(RESOURCE_SPANS, service() + field(SCOPE_SPANS, field(SPANS, span.SerializeToString() + extra)))


def agent_span(**fields: object) -> Span:
    """Return an agent's root span with random IDs."""
    span = Span(
        trace_id=os.urandom(16),
        span_id=os.urandom(8),
        name="invoke_agent helper",
        start_time_unix_nano=NOW_NS,
        end_time_unix_nano=NOW_NS + 10**9,
    )
    say(span, "gen_ai.operation.name", "invoke_agent")
    say(span, "gen_ai.agent.name", "helper")
    say(span, "gen_ai.input.messages", '[{"role":"user","parts":[{"type":"text","content":"Where is my parcel?"}]}]')
    say(span, "gen_ai.output.messages", '[{"role":"assistant","parts":[{"type":"text","content":"On its way."}]}]')
    for name, value in fields.items():
        setattr(span, name, value)
    return span


def wordy(trace_id: bytes, size: int) -> bytes:
    """Return a span with a long answer."""
    span = agent_span(trace_id=trace_id)
    output_messages = next(each for each in span.attributes if each.key == "gen_ai.output.messages").value
    output_messages.string_value = output_messages.string_value.replace(
        "On its way.", "On its way. " + "word " * (size // 5)
    )
    return field(RESOURCE_SPANS, service() + field(SCOPE_SPANS, field(SPANS, span.SerializeToString())))


def say(span: Span, key: str, text: str) -> None:
    span.attributes.add(key=key).value.string_value = text


def service(name: str = "shop", environment: str = "") -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add().resource
    resource.attributes.add(key="service.name").value.string_value = name
    if environment:
        resource.attributes.add(key="deployment.environment.name").value.string_value = environment
    return field(1, resource.SerializeToString())


def named(agent: str, service_name: str, environment: str) -> bytes:
    span = agent_span()
    next(each for each in span.attributes if each.key == "gen_ai.agent.name").value.string_value = agent
    return field(
        RESOURCE_SPANS,
        service(service_name, environment) + field(SCOPE_SPANS, field(SPANS, span.SerializeToString())),
    )


def gzipped(unit: bytes, times: int, head: bytes = b"") -> bytes:
    """Compress ``head`` and ``count`` copies of ``unit`` in pieces."""
    stream = zlib.compressobj(6, zlib.DEFLATED, 31)
    found = [stream.compress(head)]
    block = 1 << 16
    piece = unit * block
    found += [stream.compress(piece) for _ in range(times // block)]
    found.append(stream.compress(unit * (times % block)))
    found.append(stream.flush())
    return b"".join(found)


def squeeze(body: bytes) -> bytes:
    return gzip.compress(body, 6)
