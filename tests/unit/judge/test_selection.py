"""Sampling of judged traces without bias."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.score import Score, Why
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from support.embedder import WordEmbedder
from support.judged import stored, trace
from support.made_traces import Composer

CONFIDENCE = "trace.confidence"


def _evaluator(selection: Selection, *metrics: str) -> Evaluator:
    return Evaluator(
        WordEmbedder(), EvaluatorSettings(set(metrics) or {CONFIDENCE}, judge=JudgeSettings("m", selection=selection))
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_sample_has_its_share_and_contains_smaller_samples(share: float) -> None:
    chosen = {n for n in range(4000) if Selection(share).choose(f"session-{n}").included}
    assert abs(len(chosen) / 4000 - share) < 0.03
    assert chosen >= {n for n in range(4000) if Selection(share / 2).choose(f"session-{n}").included}


def test_a_trace_outside_the_sample_has_not_sampled_results() -> None:
    evaluator = _evaluator(Selection(0.0), CONFIDENCE, "trace.plan_quality")
    results, questions = evaluator.judged.questions(trace(reasoning=("First this, then that.",)))
    assert questions == []
    assert {(each.metric, each.why) for each in results} == {
        ("confidence", Why.NOT_SAMPLED),
        ("plan_quality", Why.NOT_SAMPLED),
    }


@pytest.mark.parametrize(
    ("only", "concerns"),
    [
        ({}, True),
        ({"gen_ai.agent.name": ["helper"]}, True),
        ({"gen_ai.agent.name": ["other"]}, False),
        ({"service.name": ["shop", "desk"]}, True),
        ({"service.name": ["desk"]}, False),
        ({"tenant": ["gold"]}, True),
        ({"tenant": ["lead"]}, False),
        ({"tenant": ["gold"], "beta": ["true"], "shard": ["7"]}, True),
        ({"tenant": ["gold"], "missing": ["x"]}, False),
        ({"gen_ai.agent.name": ["helper"], "tenant": ["lead"]}, False),
    ],
)
def test_selection_filters_by_agent_service_and_attribute(only: dict[str, list[str]], concerns: bool) -> None:
    held: list[dict[str, object]] = [{"service.name": "shop", "tenant": "gold"}, {"beta": True, "shard": 7}]
    assert Selection(only=only).concerns("helper", held) is concerns


def test_the_question_id_does_not_depend_on_the_sample_share() -> None:
    made = trace()
    share = next(n / 100 for n in range(1, 100) if Selection(n / 100).choose(made.trace_id).included)
    one, other = (_evaluator(each).judged.questions(made)[1][0] for each in (Selection(), Selection(share)))
    assert one.id == other.id
    result = _evaluator(Selection(share)).judged.answered(other, Score(0.5))
    assert result.finding.metadata["inclusion_probability"] == share


def _jobs(tmp_path: Path, selection: Selection, count: int = 60) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of questions, and the model-free results."""
    store = Store(tmp_path, "off")
    line = Line(store.reads, _evaluator(selection, CONFIDENCE, "trace.coherence", "trace.tool_loop"))
    composer = Composer(3)
    for _ in range(count):
        store.commit(line.decide([stored(store, composer.trace())]).changes).result()
    bodies = [json.loads(row.body) for row in store.reads.results_after(0, 10_000)]
    jobs = sum(store.jobs.counts().values())
    store.close()
    return jobs, bodies


def test_selection_by_service_splits_the_jobs(tmp_path: Path) -> None:
    shop, _ = _jobs(tmp_path / "shop", Selection(only={"service.name": ["shop"]}))
    support, _ = _jobs(tmp_path / "support", Selection(only={"service.name": ["support"]}))
    everything, _ = _jobs(tmp_path / "all", Selection())
    assert shop + support == everything
    assert 0 < shop < everything
