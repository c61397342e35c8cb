"""Handmade results."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.base.result import EvaluatorInfo, Result, Unit
from pandaeval_collector.base.score import Finding, Score

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TIME = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
END_NS = 1_772_366_400_000_000_000

UNIT = Unit(
    level="trace",
    id=TRACE_ID,
    trace_id=TRACE_ID,
    span_id=SPAN_ID,
    session_id="session-1",
    agent="helper",
    service="shop",
    environment="test",
    evidence="e0",
    trigger="root_ended",
    response_id="resp-1",
    end_ns=END_NS,
)
EMBEDDER = EvaluatorInfo("embedding", "2", "embedded-1")
CODE = EvaluatorInfo("code", "1")
JUDGE = EvaluatorInfo("llm", "3", "judge-large")


def result(metric: str = "coherence", finding: Finding | None = None, **changes: Any) -> Result:
    """Return a scored trace result. ``changes``: fields of result or unit."""
    unit_fields = {key: changes.pop(key) for key in [*changes] if key in Unit.__dataclass_fields__ and key != "id"}
    made = Result(
        id=changes.pop("id", f"{metric}-1"),
        metric=metric,
        unit=replace(UNIT, id=unit_fields.get("trace_id", UNIT.id), **unit_fields),
        finding=Score(0.75, "well said") if finding is None else finding,
        evaluator=EMBEDDER,
        threshold=0.5,
        revision=unit_fields.get("revision", 1),
        final=True,
        duration_ms=1.5,
        time=TIME,
    )
    return replace(made, **changes)
