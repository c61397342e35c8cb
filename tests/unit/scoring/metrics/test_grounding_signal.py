"""Fabricated values raise session risk."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metric import SessionContext, SessionSignal, SessionView, TraceSummary
from pandaeval_collector.scoring.metrics.session.agent_reliability import METRIC


@pytest.mark.parametrize(
    ("value", "extras", "score"),
    [(0.25, ("grounding",), 0.25), (None, ("grounding",), 0.45), (0.25, ("response", "tool_loop"), 0.45)],
)
def test_grounding_raises_session_risk_only_if_it_failed_and_is_a_signal(
    value: float | None, extras: tuple[str, ...], score: float
) -> None:
    signals = {"coherence": SessionSignal("scored", 0.45), "grounding": SessionSignal("scored", value)}
    view = SessionView("s", (TraceSummary("a" * 32, "d", False, signals),))
    found = METRIC.evaluate(view, SessionContext(0.5, frozenset({"coherence"}), {}, extras))
    assert isinstance(found, Score)
    assert found.value == pytest.approx(score)
