"""Which step broke the run?

If another metric fails a run, this metric names the first wrong step. If a judge named a step (``correctness``), the
metric uses this step. Otherwise it uses the first step in a failing result: the failed call, the unsupported value or
claim, or the first repetition of a loop. A sub-agent without steps of its own counts as a step. Results of other traces
in the session can change the named step. It does not judge whether the run failed; other metrics do.

Scale: the score is always 1. If no step is known, there is no result.

Source: docs/guides/first-wrong-step.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.analysis.rules.response_recovery import answering_span, wrong_calls
from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.scoring.metric import TraceContext, TraceMetric
from pandaeval_otel.model import Kind, Span, Trace

_MOST_CANDIDATES = 3
_JUDGED = "correctness"
"""The metric by which a judge names the first wrong step."""
_FOUND = "found by "


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    candidates = [_candidate(trace, span, metrics) for span, metrics in _named(trace, context.failing)]
    if not candidates:
        return None
    step, *_ = candidates = candidates[:_MOST_CANDIDATES]
    metadata = {"step": step, "candidates": candidates}
    found_by = ", ".join(step["reasons"]).replace(f", {_FOUND}", ", ")
    reason = f"first wrong step: {_subject(trace, step)} ({found_by})"
    return Score(1.0, reason, metadata, label=step["kind"], span_ids=(step["span_id"],))


def _subject(trace: Trace, step: Mapping[str, Any]) -> str:
    """Return the step with its place, as ``tool call 2 of 5, search`` or ``model call 3 of 4``."""
    kind, id_, tool = step["kind"], step["span_id"], step["tool"]
    if kind == Kind.LLM:
        models = [span.span_id for span in trace.spans if span.kind is Kind.LLM]
        place = f"model call {models.index(id_) + 1} of {len(models)}"
        return f"{place}, which requested {tool}" if tool else place
    at = _call(trace, id_)
    if at is not None:
        return f"tool call {at + 1} of {len(trace.tool_calls)}, {tool or trace.tool_calls[at].name}"
    name = tool or step["agent"]
    return f"{kind} {name}" if name else str(kind)


def _call(trace: Trace, span_id: str) -> int | None:
    """Return the index of the call of a step. If the step made several calls, failed and repeated calls come first."""
    own = [at for at, call in enumerate(trace.tool_calls) if call.span_id == span_id]
    if len(own) > 1:
        wrong, repeated = wrong_calls(trace), tool_loop(trace).repeated
        own.sort(key=lambda at: (not wrong[at], at not in repeated))
    return own[0] if own else None


def _candidate(trace: Trace, span: Span, metrics: Sequence[str]) -> dict[str, Any]:
    at = _call(trace, span.span_id)
    tool = span.tool_name or (None if at is None else trace.tool_calls[at].name)
    return {
        "span_id": span.span_id,
        "kind": span.kind.value,
        "tool": tool or None,
        "agent": span.agent_name or None,
        "reasons": [f"{_FOUND}{metric}" for metric in metrics],
    }


def _named(trace: Trace, failing: Mapping[str, Sequence[str]]) -> list[tuple[Span, list[str]]]:
    """Return the steps of failing metrics, the judge's step first.

    A metric that names only the run means the answering step.
    """
    steps = [span for span in trace.spans if span.span_id != trace.root_span_id]
    metrics: dict[str, list[str]] = {}
    for metric, span_ids in failing.items():
        ids = _repetitions(trace, span_ids) if metric == "tool_loop" else {*span_ids}
        named = [span.span_id for span in steps if span.span_id in ids]
        if not named and trace.root_span_id in ids and (answering := answering_span(trace)):
            named = [answering]
        if named:
            metrics.setdefault(named[0], []).append(metric)
    by_step = [(span, metrics[span.span_id]) for span in steps if span.span_id in metrics]
    return sorted(by_step, key=lambda pair: _JUDGED not in pair[1])


def _repetitions(trace: Trace, span_ids: Sequence[str]) -> set[str]:
    """Return the steps of a loop without its first round, which may have been right."""
    repeated = {trace.tool_calls[at].span_id for at in tool_loop(trace).repeated}
    return repeated & {*span_ids} or {*span_ids[1:]} or {*span_ids}


METRIC = TraceMetric(
    name="blame",
    kind="code",
    version="5",
    threshold=0.0,
    question="Which step broke the run?",
    needs="a run in which another metric failed and named a step",
    evaluate=_evaluate,
    explains=True,
    signals_failures_only=True,
)
