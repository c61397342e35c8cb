"""Which step broke the run?

For a run that another metric fails: the first wrong step that a judge names (``correctness``, of the run or of its
session), else the first step that a failing result names (the call that fails for good, the
model's call that says what stands nowhere or claims what was not done, the first repetition in a loop); an agent that
shows no step of its own is one. What other traces of the session change is explained anew. Where none names a step,
a model may that was learned from the application's own labels of steps (``pandaeval learn steps``); else nothing is
said. It does not judge whether the run is broken: it takes that from the metrics that fail it, and neither
passes nor fails.

Scale: 1 where a finding names the step; else how likely it is among the steps of the run, by the learned model.

Source: docs/guides/first-wrong-step.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.analysis.rules.response_recovery import answering_span, steps_of
from pandaeval_collector.analysis.rules.step_features import step_rows
from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.scoring.metric import Metric, TraceContext
from pandaeval_otel.model import Span, Trace

_MOST_CANDIDATES = 3
_JUDGED = "correctness"
"""The metric by which a judge names the first wrong step."""


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    found, learned, about = _named(trace, context.failing), context.learned, {}
    if not found and learned is not None:
        found = _likely(trace, learned)
        about = {"learned": {"version": learned.model.version, "labels": learned.labels}}
    candidates: list[dict[str, Any]] = []
    for span, why in found[:_MOST_CANDIDATES]:
        tool = span.tool_name or next((call.name for call in trace.tool_calls if call.span_id == span.span_id), "")
        about_it = {"span_id": span.span_id, "kind": span.kind.value}
        candidates.append({**about_it, "tool": tool or None, "agent": span.agent_name or None, **why})
    if not candidates:
        return None
    step = candidates[0]
    names = {"llm": "a model's call", "tool": "a call", "retrieval": "a retrieval"}
    what = names.get(step["kind"], f"an {step['kind']}")
    return Score(
        step.get("probability", 1.0),
        f"{what}{' of ' + step['tool'] if step['tool'] else ''}: {'; '.join(step['reasons'])}",
        {"step": step, "candidates": candidates, **about},
        label=step["kind"],
        span_ids=(step["span_id"],),
    )


def _named(trace: Trace, failing: Mapping[str, Sequence[str]]) -> list[tuple[Span, dict[str, Any]]]:
    """Returns the steps at which the failing metrics say that the run broke, the judge's first and then in order, with
    the reasons. What names the run alone speaks of the answer, and so of the step that gave it."""
    steps = [span for span in trace.spans if span.span_id != trace.root_span_id]
    found: dict[str, list[str]] = {}
    for metric, span_ids in failing.items():
        ids = {*span_ids}
        named = [span.span_id for span in steps if span.span_id in ids]
        if not named and trace.root_span_id in ids:
            named = [span_id for span_id in [answering_span(trace)] if span_id]
        if named:
            repeats = metric == "tool_loop" and len(named) > 1  # a loop's first round may have been right
            found.setdefault(named[repeats], []).append(metric)
    judged_first = sorted(steps, key=lambda span: _JUDGED not in found.get(span.span_id, ()))
    metrics = [(span, found[span.span_id]) for span in judged_first if span.span_id in found]
    return [(span, {"reasons": [f"{metric} names it" for metric in its]}) for span, its in metrics]


def _likely(trace: Trace, learned: LearnedModel) -> list[tuple[Span, dict[str, Any]]]:
    """Returns the steps of a run, the likeliest first, by a model that was learned from labels of steps."""
    steps = steps_of(trace)
    rows = step_rows(trace, steps)
    found = []
    for span, row, share in zip(steps, rows, learned.model.shares(rows), strict=True):
        likely = f"learned from {learned.labels} labels, {share:.0%} likely among {len(steps)} steps"
        found.append((span, {"probability": round(share, 4), "reasons": [likely, *learned.model.reasons(row)]}))
    return sorted(found, key=lambda each: -each[1]["probability"]) if len(steps) > 1 else []


METRIC = Metric(
    level="trace",
    name="blame",
    kind="code",
    version="4",
    threshold=0.0,
    question="Which step broke the run?",
    needs="a run that another metric fails, naming a step; or labels of steps (pandaeval learn steps)",
    evaluate=_evaluate,
    explains=True,
    signals_failures_only=True,
)
