"""Metrics give only declared reasons on recorded runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.scoring.evaluator.one_metric import run_metric
from pandaeval_collector.scoring.metric import TraceContext
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli.metrics import whys
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace, Trigger

CAPTURES = Path(__file__).parent / "captures"
SETS = ("langgraph_genai", "adk", "strands")


def _traces() -> list[Trace]:
    with TraceFiles() as run:
        for name in SETS:
            for path in sorted((CAPTURES / name).glob("*.otlp.jsonl")):
                for request in Input(str(path)).requests():
                    run.add(request)
        return list(run.traces())


def _versions(trace: Trace) -> list[Trace]:
    silent = tuple(replace(call, arguments=None, has_arguments=False, result=None) for call in trace.tool_calls)
    nothing = replace(trace, input=None, output=None, turns=(), reasoning=(), tool_calls=silent, session_id="s")
    cut = replace(trace, trigger=Trigger.SPAN_LIMIT, complete=False)
    return [trace, nothing, cut]


def test_metrics_give_only_declared_unscored_reasons() -> None:
    evaluator = Evaluator(load("embedded"), EvaluatorSettings())
    reasons: dict[str, set[Why]] = defaultdict(set)
    metrics = {key: metric for key, metric in registry().items() if metric.level == "trace"}
    traces = _traces()
    assert len(traces) > 10
    for trace in traces:
        for version in _versions(trace):
            texts = evaluator.embed([version])
            for key, metric in metrics.items():
                finding = run_metric(metric, version, TraceContext(texts, 0.5))
                if isinstance(finding, Unscored):
                    reasons[key].add(finding.why)
    for key, metric in metrics.items():
        assert reasons[key] <= {*whys(metric)}, key
        assert (
            Why.INCOMPLETE_TRACE in reasons[key] or Why.INCOMPLETE_TRACE not in whys(metric) or metric.kind == "llm"
        ), key
        assert Why.METRIC_ERROR not in reasons[key], key
    assert sum(Why.NO_CONTENT in whys for whys in reasons.values()) >= 8
