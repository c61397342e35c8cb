"""Which step broke the run?

For a run that another metric fails (or any, where ``trace.blame`` is enabled by its name): its steps, ranked by what
speaks for each (failed calls and what fed them, values that stand nowhere, results that nothing uses, loops, refusals,
changes, hand-overs, place in the run), each with its probability. The first is named only where it is sure enough; else
the label is ``unknown``. It does not judge whether the run is broken: it takes that from the metrics that fail it, and
neither passes nor fails.

Scale: probability of the first step, of all steps of the run.

Source: docs/blame.md; a conditional logit (McFadden 1974) on people's labels (AgentRx) and planted faults together.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.analysis.rules.blame_steps import BlameStep, steps, told
from pandaeval_collector.analysis.stats.blame_model import BlameModel, shipped
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.scoring.metric import Metric, TraceContext
from pandaeval_otel.model import Trace

UNKNOWN = "unknown"
_MOST_CANDIDATES, _MOST_REASONS = 3, 3


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    found = steps(trace, context.failing)
    if len(found) < 2:
        return None
    model = shipped()
    chances = model.probabilities([step.features for step in found])
    order = sorted(range(len(found)), key=lambda at: -chances[at])
    candidates = [_told(found[at], chances[at], model) for at in order[:_MOST_CANDIDATES]]
    first, probability = candidates[0], chances[order[0]]
    sure = probability >= model.sure
    metadata = {
        "step": first if sure else None,
        "candidates": candidates,
        "steps": len(found),
        "model": model.version,
    }
    reason = f"{_where(first)}, {probability:.0%} sure: {'; '.join(first['reasons']) or 'by its place in the run'}"
    return Score(
        min(1.0, probability),
        reason if sure else f"no step is sure; likeliest is {reason}",
        metadata,
        label=first["kind"] if sure else UNKNOWN,
        span_ids=(first["span_id"],) if sure else (),
    )


def _told(step: BlameStep, chance: float, model: BlameModel) -> dict[str, Any]:
    return {
        "span_id": step.span_id,
        "kind": step.kind,
        "tool": step.tool or None,
        "agent": step.agent or None,
        "probability": round(chance, 4),
        "reasons": [words for name in model.reasons(step.features) if (words := told(name))][:_MOST_REASONS],
    }


def _where(step: dict[str, Any]) -> str:
    names = {"request": "what was asked for", "llm": "a model's call", "tool": "a call", "retrieval": "a retrieval"}
    what = names.get(step["kind"], f"an {step['kind']}")
    return f"{what} of {step['tool']}" if step["tool"] else what


METRIC = Metric(
    level="trace",
    name="blame",
    kind="math",
    version="1",
    threshold=0.0,
    question="Which step broke the run?",
    needs="a run of two steps or more that another metric fails",
    evaluate=_evaluate,
    explains=True,
    signals_failures_only=True,
)
