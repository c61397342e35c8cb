"""What a learned model says of a session, and which sessions it says nothing of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import pytest

from pandaeval_collector.analysis.stats.learned import LearnedModel, ProblemModel, ShareEstimate
from pandaeval_collector.analysis.stats.problem_features import RULES, Course
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.scoring.metric import SessionContext, SessionSignal, SessionView, TraceSummary
from pandaeval_collector.scoring.metrics.session.problem import METRIC, rule_scores

MODEL = ProblemModel(("refusals",), (0.0,), (1.0,), (2.0,), bias=-1.0, slope=1.0, offset=0.0, rate=0.123456)
"""One refusal makes the odds e: -1 + 2."""
FIGURES = ShareEstimate(0.9, 0.8, 1.0, 80), ShareEstimate(0.85, 0.7, 0.95, 80)
LEARNED = LearnedModel("session", "desk", "people", "trace.task_completion", MODEL, 80, *FIGURES)


def said(courses: Sequence[Course | None], learned: LearnedModel | None = LEARNED) -> Score | Unscored | None:
    traces = tuple(TraceSummary(f"{at:032x}", "d", False, {}, course=course) for at, course in enumerate(courses, 1))
    found = METRIC.evaluate(SessionView("s", traces), SessionContext(0.5, frozenset(), {}, (), learned=learned))
    assert not isinstance(found, tuple)
    return found  # type: ignore[return-value]


def test_all_that_a_score_tells() -> None:
    found = said([Course(), Course(refusals=1)])
    assert isinstance(found, Score)
    chance = 1 / (1 + exp(-1))
    assert found.value == pytest.approx(1 - chance)
    assert found.label == "likely_problem"
    assert found.metadata == {
        "problem_probability": pytest.approx(chance, abs=5e-5),
        "usual_probability": 0.1235,
        "reasons": list(MODEL.reasons({"refusals": 1.0})),
        "learned": {
            "version": LEARNED.model.version,
            "from": "people (trace.task_completion)",
            "labels": 80,
            "auroc": "0.90 [0.80, 1.00]",
            "auroc_at_equal_length": "0.85 [0.70, 0.95]",
        },
    }
    [because] = found.metadata["reasons"]
    assert found.reason == f"{because}: a problem in 73% of such runs, 12% of all that were labelled"


def test_where_nothing_speaks_for_a_problem_none_is_named() -> None:
    found = said([Course()])
    assert isinstance(found, Score)
    assert (found.label, found.metadata["reasons"]) == (None, [])
    assert found.reason.startswith("nothing speaks for one: a problem in 27% of such runs")


def test_a_problem_that_is_as_likely_as_not_is_not_likely() -> None:
    even = replace(LEARNED, model=replace(MODEL, bias=-2.0))
    found = said([Course(refusals=1)], even)
    assert isinstance(found, Score)
    assert (found.value, found.label) == (0.5, None)


def test_of_what_was_not_counted_nothing_is_said() -> None:
    assert said([]) is None
    assert said([Course()], learned=None) is None
    found = said([Course(refusals=1), None])
    assert isinstance(found, Unscored)
    assert (found.why, "before anything was learned" in found.reason) == (Why.INSUFFICIENT_EVIDENCE, True)


def test_scores_of_rules_alone_are_features() -> None:
    signals = {name: SessionSignal("scored", 0.5) for name in (*RULES, "confidence")}
    signals["response"] = SessionSignal("unscored", None, "no_content")
    assert rule_scores(TraceSummary("1", "d", False, signals)) == {name: 0.5 for name in RULES if name != "response"}
