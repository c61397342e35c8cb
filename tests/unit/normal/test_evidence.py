"""The evidence of a trace."""

from __future__ import annotations

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.wire.splitting import split_logs


def test_logs_of_one_millisecond_keep_their_order() -> None:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for number in range(20):
        record = records.add(trace_id=b"t" * 16, span_id=b"s" * 8, event_name="gen_ai.choice", time_unix_nano=1_000_000)
        record.body.string_value = str(number)
    [fragment] = split_logs(request.SerializeToString()).fragments
    evidence = gather([(True, fragment.chunk)] * 2)
    assert [log.body for log in evidence.logs] == [str(number) for number in range(20)]
