"""Human labels over OTLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

TRACE = "0af7651916cd43dd8448eb211c80319c"


def event(
    name: str = "task_completion",
    score: float | None = None,
    label: str = "",
    annotator: str = "",
    comment: str = "",
    kind: str = "human",
    trace: bytes = bytes.fromhex(TRACE),
    more: Mapping[str, str] | None = None,
) -> Any:
    """Return the log event ``gen_ai.evaluation.result``, without unset attributes."""
    texts = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.evaluator.type": kind,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.evaluator.id": annotator,
        "gen_ai.evaluation.explanation": comment,
        **(more or {}),
    }
    attributes = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in texts.items() if text]
    if score is not None:
        attributes.append(KeyValue(key="gen_ai.evaluation.score.value", value=AnyValue(double_value=score)))
    return LogRecord(
        event_name="gen_ai.evaluation.result",
        trace_id=trace,
        time_unix_nano=1_700_000_000 * 10**9,
        attributes=attributes,
    )


def request(*records: Any, scope: str = "reviews") -> Any:
    scoped = ScopeLogs(scope=InstrumentationScope(name=scope), log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[scoped])])
