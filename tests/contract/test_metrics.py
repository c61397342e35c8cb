"""What holds for every metric that is found, whoever wrote it."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.base.result import Identity
from pandaeval_collector.base.score import Assumed, Score, Unscored
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.cases import Case, Trial, TrialContext
from pandaeval_collector.scoring.evaluator import Evaluator, trace_unit
from pandaeval_collector.scoring.metric import Metric, SessionContext, SessionView, Texts, TraceContext, TurnContext
from pandaeval_collector.scoring.metric.declaration import ends
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace, Trigger, Turn

METRICS = list(registry().values())
BANDS = Bands(off=0.1, cut=0.3, on=0.5)
ASKED, SAID = "Which museums open on Sundays?", "Most museums open at ten on Sundays."


def _empty(metric: Metric[Any, Any]) -> Any:
    if metric.level == "session":
        view = SessionView("s", ())
        return metric.evaluate(view, SessionContext(0.5, frozenset({"confidence"}), {}, ("error", "tool_loop")))
    trace = Trace("a" * 32, (), "b" * 16, session_id="s")
    if metric.level == "trial":
        return metric.evaluate(Trial(Case(id="c"), "1", (trace,)), TrialContext(0.5))
    if metric.level == "turn":
        return metric.evaluate(TurnView(replace(trace, turns=(Turn(None, None),))), TurnContext(3.0))
    return metric.evaluate(trace, TraceContext(Texts({}, (), "none", BANDS), 0.5))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
class TestEveryMetric:
    def test_says_what_it_asks_and_what_it_does_not_judge(self, metric: Metric[Any, Any]) -> None:
        said = metric.description
        assert said.splitlines()[0].endswith("?"), "the first line is the question"
        assert "It does not " in " ".join(said.split()), "a sentence says what it does not judge"
        assert "Source:" in said or "Ours" in said
        assert metric.question.endswith("?")
        assert metric.needs

    def test_lives_where_its_level_says(self, metric: Metric[Any, Any]) -> None:
        module = importlib.import_module(f"pandaeval_collector.scoring.metrics.{metric.level}.{metric.name}")
        assert module.METRIC is metric
        assert module.__doc__ is not None
        assert metric.description == module.__doc__.strip()
        assert metric.kind in ("embedding", "llm", "code", "math")
        assert metric.version

    def test_has_a_threshold_on_its_scale(self, metric: Metric[Any, Any]) -> None:
        least, most = ends(metric.scale)
        assert least <= metric.threshold_for(None) <= most
        assert least <= metric.threshold_for(BANDS) <= most

    def test_never_scores_an_empty_subject(self, metric: Metric[Any, Any]) -> None:
        assert not isinstance(_empty(metric), Score)


def test_a_metric_that_raises_costs_its_own_result_only() -> None:
    class Embedder:
        id, bands = "none", None

        def embed(self, texts: Any) -> Any:
            return np.zeros((len(texts), 2), dtype=np.float32)

    def fail(*_: Any) -> Any:
        raise RuntimeError("bug")

    evaluator = Evaluator(Embedder())
    broken = Metric("trace", "broken", "code", "1", 0.5, "?", "-", fail)
    evaluator._trace = [broken, *evaluator._trace]
    trace = Trace("a" * 32, (), "b" * 16, turns=(Turn("", ""),), trigger=Trigger.FILE)
    results = evaluator.trace(trace, evaluator.embed([trace]))
    assert [result.why for result in results if result.metric == "broken"] == ["metric_error"]
    assert any(isinstance(result.finding, Assumed) for result in results if result.metric == "coherence")


def test_ids_follow_from_what_a_result_depends_on() -> None:
    unit = trace_unit(Trace("a" * 32, (), "b" * 16, digest="d1"))
    other = trace_unit(Trace("a" * 32, (), "b" * 16, digest="d2", revision=7))
    base = Identity("trace.x", "1", None, {"threshold": 0.5}).of(unit)
    assert base == Identity("trace.x", "1", None, {"threshold": 0.5}).of(unit)
    changed = [
        Identity("trace.x", "1", None, {"threshold": 0.5}).of(other),
        Identity("trace.y", "1", None, {"threshold": 0.5}).of(unit),
        Identity("trace.x", "2", None, {"threshold": 0.5}).of(unit),
        Identity("trace.x", "1", "m", {"threshold": 0.5}).of(unit),
        Identity("trace.x", "1", None, {"threshold": 0.6}).of(unit),
    ]
    assert len({base, *changed}) == 6


def test_a_refusal_replaces_a_score_but_not_a_metric_that_does_not_apply() -> None:
    class Embedder:
        id, bands = "none", None

        def embed(self, texts: Any) -> Any:
            return np.ones((len(texts), 1), dtype=np.float32)

    trace = Trace("a" * 32, (), "b" * 16, turns=(Turn(ASKED, SAID),), input=ASKED, output=SAID, fragment=True)
    evaluator = Evaluator(Embedder())
    results = evaluator.trace(trace, evaluator.embed([trace]))
    assert {(r.metric, r.why) for r in results} == {
        ("coherence", "incomplete_trace"),
        ("response", "incomplete_trace"),
    }
    assert all(isinstance(r.finding, Unscored) for r in results)
