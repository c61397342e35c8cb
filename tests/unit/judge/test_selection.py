"""Sampling of judged traces without bias."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.score import Score, Why
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Turn
from support.embedder import WordEmbedder
from support.judged import call, stored, trace
from support.made_traces import Composer

DOCS = Path(__file__).parents[3] / "docs" / "guides" / "sampling.md"
CONFIDENCE = "trace.confidence"


def _evaluator(selection: Selection, *metrics: str) -> Evaluator:
    return Evaluator(
        WordEmbedder(), EvaluatorSettings(set(metrics) or {CONFIDENCE}, judge=JudgeSettings("m", selection=selection))
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_sample_has_its_share_and_holds_every_smaller_one(share: float) -> None:
    chosen = {n for n in range(4000) if Selection(share).choose(f"session-{n}", False).included}
    assert abs(len(chosen) / 4000 - share) < 0.03
    assert chosen >= {n for n in range(4000) if Selection(share / 2).choose(f"session-{n}", False).included}


def test_a_trace_outside_of_the_sample_has_results_that_say_so() -> None:
    evaluator = _evaluator(Selection(0.0), CONFIDENCE, "trace.plan_quality")
    results, questions = evaluator.judged.questions(trace(reasoning=("First this, then that.",)))
    assert questions == []
    assert {(each.metric, each.why) for each in results} == {
        ("confidence", Why.NOT_SAMPLED),
        ("plan_quality", Why.NOT_SAMPLED),
    }


def test_suspicious_traces_are_always_judged_and_the_chance_says_so() -> None:
    selection = Selection(0.2, when="suspicious")
    for number in range(200):
        plain, suspicious = (selection.choose(f"s{number}", each) for each in (False, True))
        assert suspicious.included
        assert (plain.probability, suspicious.probability) == (0.2, 1.0)
        assert plain.included == plain.in_sample == suspicious.in_sample
    assert not Selection(0.0).choose("s", suspicious=True).included, "unless that is what is wanted"


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
def test_only_some_agents_services_or_attributes(only: dict[str, list[str]], concerns: bool) -> None:
    held: list[dict[str, object]] = [{"service.name": "shop", "tenant": "gold"}, {"beta": True, "shard": 7}]
    assert Selection(only=only).concerns("helper", held) is concerns


def test_the_id_does_not_depend_on_who_was_chosen() -> None:
    one, other = (
        _evaluator(each).judged.questions(trace(), True)[1][0]
        for each in (Selection(), Selection(0.1, when="suspicious"))
    )
    assert one.id == other.id
    result = _evaluator(Selection(0.1, when="suspicious")).judged.answered(other, Score(0.5))
    assert result.finding.metadata["inclusion_probability"] == 1.0


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


def test_what_a_metric_without_a_model_found_bad_is_asked_about(tmp_path: Path) -> None:
    everything, bodies = _jobs(tmp_path / "all", Selection())
    suspicious, _ = _jobs(tmp_path / "some", Selection(0.0, when="suspicious"))
    bad = {each["trace_id"] for each in bodies if each["success"] is False}
    silent = {each["trace_id"] for each in bodies if each["why"] == "no_content"}
    assert bad
    assert len(bad - silent) == suspicious < everything


def test_services_are_told_apart(tmp_path: Path) -> None:
    shop, _ = _jobs(tmp_path / "shop", Selection(only={"service.name": ["shop"]}))
    support, _ = _jobs(tmp_path / "support", Selection(only={"service.name": ["support"]}))
    everything, _ = _jobs(tmp_path / "all", Selection())
    assert shop + support == everything
    assert 0 < shop < everything


# -- the queries of the documentation ------------------------------------------------------------------------------


def _population(chance: random.Random, selection: Selection) -> tuple[float, float, list[dict[str, Any]]]:
    """Return failure rates of all and judged runs, and the results."""
    results: list[dict[str, Any]] = []
    failures = 0
    for number in range(20_000):
        suspicious = chance.random() < 0.1
        fails = chance.random() < (0.7 if suspicious else 0.05)
        failures += fails
        choice = selection.choose(f"trace {number}", suspicious)
        if choice.included:
            body = {"trace_id": f"{number:032x}", "metric": "task_completion", "outcome": "scored", "revision": 2}
            body |= {"success": not fails, "metadata": {"inclusion_probability": choice.probability}}
            results += [{**body, "revision": 1, "success": fails}] * (number % 50 == 0) + [body]
    newest = {each["trace_id"]: each for each in results}.values()
    naive = sum(not each["success"] for each in newest) / len(newest)
    return failures / 20_000, naive, results


@pytest.fixture(scope="module")
def judged() -> tuple[float, list[dict[str, Any]]]:
    truth, naive, results = _population(random.Random(5), Selection(0.1, when="suspicious"))
    assert naive > 2 * truth, "without weights the estimate is far off"
    unscored = {"trace_id": "f" * 32, "metric": "task_completion", "outcome": "unscored", "revision": 1}
    return truth, [*results, {**unscored, "success": None, "metadata": {"inclusion_probability": 1.0}}]


def _block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert found
    return found[1]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_jq_of_the_documentation_is_not_skewed(judged: tuple[float, list[dict[str, Any]]], tmp_path: Path) -> None:
    truth, results = judged
    (tmp_path / "results.jsonl").write_text("\n".join(json.dumps(each) for each in results))
    ran = subprocess.run(["bash", "-c", _block("bash")], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(ran.stdout) == pytest.approx(truth, abs=0.01)


def test_with_the_same_chance_for_all_no_weights_are_needed() -> None:
    truth, naive, _ = _population(random.Random(6), Selection(0.2))
    assert naive == pytest.approx(truth, abs=0.012)


def test_a_suspicious_trace_outside_of_the_sample_says_nothing_to_its_session(tmp_path: Path) -> None:
    selection = Selection(0.0, when="suspicious")
    evaluator = _evaluator(selection)
    bad = trace(turns=(Turn("Where?", None),), calls=[call(1)], error="boom")
    [question] = evaluator.judged.questions(bad, suspicious=True)[1]
    assert not question.choice.in_sample
    assert evaluator.judged.answered(question, Score(0.1)).finding.metadata["in_sample"] is False
