"""A collector's output as requests that return to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_collector.base.result import EvaluatorInfo
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters._otlp.transport import Envelope
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.embedder import WordEmbedder
from support.made_traces import MadeTrace


@dataclass(frozen=True, slots=True)
class Output:
    traces: ExportTraceServiceRequest
    logs: ExportLogsServiceRequest


def output_about(traces: Iterable[MadeTrace], instance: str = "another") -> Output:
    """Return output about traces, sessions and a judged metric."""
    with TraceFiles() as run:
        for trace in traces:
            run.add(Request(False, trace.request().SerializeToString()))
        results = list(replay(run, Evaluator(WordEmbedder(), EvaluatorSettings())))
    judged = replace(results[0], id="f" * 32, metric="plan_quality", evaluator=EvaluatorInfo("llm", "1", "m"))
    encoded = encode_attributes([*results, judged])
    around = Envelope(instance)
    return Output(
        ExportTraceServiceRequest.FromString(around.request(spans(encoded))),
        ExportLogsServiceRequest.FromString(around.request(log_record(each) for each in encoded)),
    )
