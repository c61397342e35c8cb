"""Results as the page needs them: a short form for lists, and all of it for the trace or session that is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.report.text import pruned
from pandaeval_collector.result import Result
from pandaeval_collector.score import Score
from pandaeval_collector.untrusted.excerpt import clean, excerpt

_SHORT_REASON, _LONG_REASON, _MAX_SPANS, _MAX_SIGNALS = 240, 4000, 200, 2000
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "per_trace_signals")


@dataclass(slots=True)
class ShownResult:
    """The newest revision of one metric's result about one unit, and what the older ones said. ``key``: the metric's,
    and the unit's id where a trace has several (turns); ``unit``: the unit's id."""

    key: str
    unit: str
    short: dict[str, Any]
    full: dict[str, Any]
    revision: int
    older: list[float | None] = field(default_factory=list)

    @property
    def signal(self) -> float | None:
        """The score as sessions see it (coherence on its calibrated scale); ``None`` if there is none."""
        value = self.short.get("signal")
        return None if value is None else float(value)

    @property
    def is_scored(self) -> bool:
        return bool(self.short["outcome"] == "scored")

    @property
    def failed(self) -> bool:
        return self.short.get("success") is False


def shown(result: Result) -> ShownResult:
    """A result for the page."""
    finding, unit = result.finding, result.unit
    scored = finding if isinstance(finding, Score) else None
    short = {
        "metric": f"{unit.level}.{result.metric}",
        "outcome": result.outcome,
        "score": result.score,
        "signal": float(scored.metadata.get("calibrated", scored.value)) if scored else None,
        "success": result.success,
        "label": excerpt(result.label, 60),
        "why": result.why,
        "reason": excerpt(finding.reason, _SHORT_REASON),
    }
    full = {
        "reason": clean(finding.reason[:_LONG_REASON]),
        "raw": scored.raw if scored else None,
        "scale": scored.scale if scored else None,
        "threshold": result.threshold,
        "coverage": 1.0 if result.outcome == "assumed" else getattr(finding, "coverage", 1.0),
        "by": result.evaluator.kind,
        "model": result.evaluator.model,
        "version": result.evaluator.version,
        "trigger": unit.trigger,
        "final": result.final,
        "cost": result.cost_usd,
        "tokens": result.tokens,
        "span": unit.span_id,
        "spans": list(scored.span_ids[:_MAX_SPANS]) if scored else [],
        "metadata": {key: pruned(held) for key, held in finding.metadata.items() if key not in _SHOWN_ELSEWHERE},
        "id": result.id,
    }
    if unit.level == "session":
        full["risks"] = _risks(finding.metadata.get("per_trace_signals") or {})
    whole = unit.id in (unit.trace_id, unit.session_id)
    key = short["metric"] if whole else f"{short['metric']} {unit.id}"
    return ShownResult(str(key), unit.id, _present(short), _present(full), result.revision)


def _risks(signals: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """What each trace brought to its session's score, by trace id."""
    return {trace_id: parts for _, (trace_id, parts) in zip(range(_MAX_SIGNALS), signals.items(), strict=False)}


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}
