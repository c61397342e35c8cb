"""A message's first item decides its signal."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.kafka.topics import holds_logs
from support.made_traces import Composer

_ID = bytes(range(16))


def _logs(record: LogRecord) -> bytes:
    request = ExportLogsServiceRequest()
    block = request.resource_logs.add()
    block.resource.attributes.add(key="service.name").value.string_value = "shop"
    block.scope_logs.add()  # an empty scope
    block.scope_logs.add().log_records.append(record)
    return request.SerializeToString()


def test_a_span_message_holds_no_logs() -> None:
    composer = Composer(3)
    assert not any(holds_logs(composer.trace().request().SerializeToString()) for _ in range(20))


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(time_unix_nano=1, trace_id=_ID, span_id=_ID[:8], event_name="gen_ai.user.message"),
        LogRecord(trace_id=_ID, severity_text="INFO"),
        LogRecord(),
    ],
)
def test_a_log_message_holds_logs(record: LogRecord) -> None:
    assert holds_logs(_logs(record))


@pytest.mark.parametrize("request_", [b"", ExportTraceServiceRequest().SerializeToString(), b"\x0a\xff", b"no OTLP"])
def test_empty_and_invalid_messages_do_not_count_as_logs(request_: bytes) -> None:
    assert not holds_logs(request_)
