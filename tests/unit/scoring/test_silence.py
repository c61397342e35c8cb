"""Every agent trace gets a result."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_otel.model import Kind
from pandaeval_otel.normal.trace import Closing, is_genai, trace_of
from tests.support.builders import Spans


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.OTHER, Kind.STEP, Kind.EVALUATION)])
@pytest.mark.parametrize("error", [None, "no wind"])
def test_single_span_without_content_gets_results_with_a_reason(kind: Kind, error: str | None) -> None:
    spans = Spans()
    spans.add(kind, error=error)
    trace = trace_of(spans(), "0" * 32, Closing())
    evaluator = Evaluator(load("embedded"), EvaluatorSettings())
    results = evaluator.trace(trace, evaluator.embed([trace]))
    assert is_genai(trace)
    assert results
    assert all(result.finding.reason for result in results)
