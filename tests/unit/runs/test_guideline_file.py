"""The file of guidelines, and what a judge makes of those that are adopted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.judge.guidelines import Guidance, guidance
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.runs.settings import WrittenGuideline, adopted, read_guidelines
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.metrics.trace._facts import TASK as OF_TASK
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from pandaeval_lab.cli._align import write_guidelines
from pandaeval_otel.normal.trace import Closing, trace_of
from support.builders import Spans, says, user
from support.embedder import WordEmbedder

RUBRIC = CONFIDENCE.rubrics[-1]
TASK = rubric_of((OF_TASK,))

KEY = "trace.confidence"
ALL = WrittenGuideline(metric=KEY, text="Heed hedges.", state="adopted")
OURS = WrittenGuideline(metric=KEY, agent="desk", text="An apology is no hedge.", state="adopted")
OTHER = WrittenGuideline(metric="trace.task_completion", text="Heed results.")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "guidelines.yaml"
    entries = [ALL, OURS, OTHER.model_copy(update={"state": "rejected", "why": "none", "figures": {"seen_n": 20.0}})]
    write_guidelines(entries, path)
    assert read_guidelines(path) == entries
    assert [each.text for each in adopted(entries)] == [ALL.text, OURS.text]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- {metric: confidence, text: x}", "0.metric"),
        ("- {metric: trace.confidence, text: ''}", "0.text"),
        ("- {metric: trace.confidence, text: x, state: maybe}", "0.state"),
        ("- {metric: trace.confidence, text: x, when: now}", "0.when"),
        ("a: b: c", "judge.guidelines"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "guidelines.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=why):
        read_guidelines(path)


def test_only_the_question_of_the_metric_is_asked_with_them() -> None:
    heeded = guidance([ALL.guideline, OURS.guideline, OTHER.guideline], KEY, RUBRIC.name, "desk")
    assert heeded.texts == (ALL.text, OURS.text)
    asked = heeded.added_to(RUBRIC)
    assert asked.text.startswith(RUBRIC.text.strip())
    assert asked.text.endswith(f"- {ALL.text}\n- {OURS.text}")
    assert asked.version == RUBRIC.version + heeded.mark
    assert heeded.added_to(TASK) is TASK
    assert Guidance(RUBRIC.name).added_to(RUBRIC) is RUBRIC


def _question(judge: JudgeSettings, agent: str) -> Any:
    spans = Spans()
    spans.agent(name=agent, input=(user("Find the parcel of Mrs. Weston."),), output=(says("It is here."),))
    trace = trace_of(spans(), "0" * 32, Closing())
    settings = EvaluatorSettings(enabled=frozenset({KEY}), judge=judge)
    return Evaluator(WordEmbedder(), settings).judged.questions(trace)[1][0]


def test_results_with_and_without_guidelines_never_share_an_id() -> None:
    plain, all_, ours = (JudgeSettings("m", guidelines=adopted(entries)) for entries in ([], [ALL], [ALL, OURS]))
    found = [_question(judge, "desk") for judge in (plain, all_, ours)]
    assert len({each.id for each in found}) == 3
    assert found[0].version == found[0].metric.version
    assert _question(all_, "shop").id == _question(ours, "shop").id, "another agent's guideline changes nothing"
