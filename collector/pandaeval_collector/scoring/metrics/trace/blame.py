"""Which step broke the run?

If another metric fails a run, this metric names the first wrong step. If a judge named a step (``correctness``), the
metric uses this step. Otherwise it uses the first step in a failing result: the failed call, the unsupported value or
claim, or the first repetition. A sub-agent without steps of its own counts as a step. Results of other traces in the
session can change the named step. It does not judge whether the run failed; other metrics do.

Scale: the score is always 1. If no step is known, there is no result.

Source: docs/guides/first-wrong-step.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.analysis.rules.response_recovery import answering_span
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.scoring.metric import TraceContext, TraceMetric
from pandaeval_otel.model import Span, Trace

_MOST_CANDIDATES = 3
_JUDGED = "correctness"
"""The metric by which a judge names the first wrong step."""
_SUBJECTS = {"llm": "model call", "tool": "call", "retrieval": "retrieval"}


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    candidates = [_candidate(trace, span, metrics) for span, metrics in _named(trace, context.failing)]
    if not candidates:
        return None
    step, *_ = candidates = candidates[:_MOST_CANDIDATES]
    kind, tool = step["kind"], step["tool"]
    subject = _SUBJECTS.get(kind, kind) + (f" to {tool}" if tool else "")
    metadata = {"step": step, "candidates": candidates}
    reason = f"first wrong step: {subject} ({'; '.join(step['reasons'])})"
    return Score(1.0, reason, metadata, label=kind, span_ids=(step["span_id"],))


def _candidate(trace: Trace, span: Span, metrics: Sequence[str]) -> dict[str, Any]:
    tool = span.tool_name or next((call.name for call in trace.tool_calls if call.span_id == span.span_id), None)
    return {
        "span_id": span.span_id,
        "kind": span.kind.value,
        "tool": tool or None,
        "agent": span.agent_name or None,
        "reasons": [f"found by {metric}" for metric in metrics],
    }


def _named(trace: Trace, failing: Mapping[str, Sequence[str]]) -> list[tuple[Span, list[str]]]:
    """Return the steps of failing metrics, the judge's step first.

    A metric that names only the run means the answering step.
    """
    steps = [span for span in trace.spans if span.span_id != trace.root_span_id]
    metrics: dict[str, list[str]] = {}
    for metric, span_ids in failing.items():
        ids = {*span_ids}
        named = [span.span_id for span in steps if span.span_id in ids]
        if not named and trace.root_span_id in ids and (answering := answering_span(trace)):
            named = [answering]
        if named:
            repeats = metric == "tool_loop" and len(named) > 1  # a loop's first round may have been right
            metrics.setdefault(named[repeats], []).append(metric)
    by_step = [(span, metrics[span.span_id]) for span in steps if span.span_id in metrics]
    return sorted(by_step, key=lambda pair: _JUDGED not in pair[1])


METRIC = TraceMetric(
    name="blame",
    kind="code",
    version="4",
    threshold=0.0,
    question="Which step broke the run?",
    needs="a run in which another metric failed and named a step",
    evaluate=_evaluate,
    explains=True,
    signals_failures_only=True,
)
