"""The rulings file and its use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.judge.rulings import Guidance, Ruling, guidance
from pandaeval_collector.runs.rulings_file import RulingsInForce, read_rulings, write_rulings
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.metrics.session._correctness import WHOLE
from pandaeval_collector.scoring.metrics.trace._facts import TASK as OF_TASK
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from pandaeval_otel.normal.trace import Closing, trace_of
from support.builders import Spans, says, user
from support.embedder import WordEmbedder

RUBRIC = CONFIDENCE.rubrics[-1]
TASK = rubric_of((OF_TASK,))
KEY = "trace.confidence"
NULL_IS_RIGHT = "An explicit null for an optional argument is right."


def ruling(text: str, metric: str = KEY, **more: Any) -> Ruling:
    return Ruling.model_validate({"metric": metric, "text": text, **more})


ALL = ruling("Heed hedges.")
OURS = ruling("An apology is no hedge.", agent="desk")
OTHER = ruling("Heed results.", "trace.task_completion")
REJECTED = ruling("Heed tone.", state="rejected", why="none", figures={"seen_n": 20.0})
ANSWER = ruling(NULL_IS_RIGHT, "correctness", question="Is null wrong?", author="Jo", date="2026-11-29", id="null_1")


def test_written_rulings_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rulings.yaml"
    write_rulings([ALL, OURS, REJECTED, ANSWER], path)
    assert read_rulings(path) == [ALL, OURS, REJECTED, ANSWER]
    assert read_rulings(tmp_path / "none.yaml") == []


def test_an_entry_with_only_text_and_date_is_a_correctness_ruling_for_all_agents(tmp_path: Path) -> None:
    path = tmp_path / "rulings.yaml"
    path.write_text(f"- text: {NULL_IS_RIGHT}\n  date: 2026-11-29\n")
    [read] = read_rulings(path)
    assert (read.metric, read.agent, read.state, len(read.id)) == ("correctness", "", "adopted", 8)
    assert read.concerns(["session.correctness"], "desk")
    assert read.concerns(["trace.correctness"], "")
    assert not read.concerns([KEY], "desk")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- {metric: 'a b', text: x}", "0.metric"),
        ("- {text: ''}", "0.text"),
        ("- {text: x, state: maybe}", "0.state"),
        ("- {text: x, when: now}", "0.when"),
        ("- {text: x, id: ''}", "0.id"),
        ("a: b: c", "judge.rulings"),
    ],
)
def test_an_invalid_file_is_rejected_with_the_place_of_the_error(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "rulings.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=why):
        read_rulings(path)


def test_a_file_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "rulings.yaml"
    with pytest.raises(UserError, match=r"rulings\.yaml cannot be written \(No such file or directory\)"):
        write_rulings([ALL], path)


def test_a_changed_file_takes_effect_at_once_and_an_invalid_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "rulings.yaml"
    rulings = RulingsInForce(path)
    assert rulings() == ()
    write_rulings([ALL], path)
    assert rulings() == (ALL,)
    path.write_text("- nonsense")
    assert rulings() == (ALL,), "the earlier rulings stay in force"
    os.unlink(path)
    assert rulings() == ()


def test_rulings_are_added_only_to_the_question_of_their_metric() -> None:
    heeded = guidance([ALL, OURS, OTHER, REJECTED], [KEY], RUBRIC.name, "desk")
    assert heeded.texts == (ALL.text, OURS.text)
    asked = heeded.added_to(RUBRIC)
    assert asked.text.startswith(RUBRIC.text.strip())
    assert asked.text.endswith(f"- {ALL.text}\n- {OURS.text}")
    assert asked.version == RUBRIC.version + heeded.mark
    assert heeded.added_to(TASK) is TASK
    assert Guidance(RUBRIC.name).added_to(RUBRIC) is RUBRIC


def test_the_question_behind_a_ruling_is_not_sent_to_the_judge() -> None:
    asked = guidance([ANSWER], ["session.correctness"], WHOLE.name, "").added_to(WHOLE)
    assert NULL_IS_RIGHT in asked.text
    assert "Is null wrong?" not in asked.text, "a judge wrote it after it had read spans"


def _question(rulings: list[Ruling], agent: str) -> Any:
    spans = Spans()
    spans.agent(name=agent, input=(user("Find the parcel of Mrs. Weston."),), output=(says("It is here."),))
    trace = trace_of(spans(), "0" * 32, Closing())
    judge = JudgeSettings("m", rulings=lambda: tuple(rulings))
    settings = EvaluatorSettings(enabled=frozenset({KEY}), judge=judge)
    return Evaluator(WordEmbedder(), settings).judged.questions(trace)[1][0]


def test_results_with_and_without_a_ruling_never_share_an_id() -> None:
    found = [_question(rulings, "desk") for rulings in ([], [ALL], [ALL, OURS])]
    assert len({each.id for each in found}) == 3
    assert found[0].version == found[0].metric.version
    assert _question([ALL], "shop").id == _question([ALL, OURS], "shop").id, "another agent's ruling changes nothing"


def test_a_ruling_for_one_metric_keeps_the_shared_call() -> None:
    spans = Spans()
    spans.agent(input=(user("Find the parcel of Mrs. Weston."),), output=(says("It is here."),))
    trace = trace_of(spans(), "0" * 32, Closing())
    judge = JudgeSettings("m", rulings=lambda: (ANSWER,))
    enabled = frozenset({"trace.correctness", "trace.task_completion"})
    judged = Evaluator(WordEmbedder(), EvaluatorSettings(enabled=enabled, judge=judge)).judged
    questions = judged.questions(trace)[1]
    together = {question.metric.key: judged.together(questions, question) for question in questions}
    assert together["trace.correctness"] == together["trace.task_completion"]
    assert [NULL_IS_RIGHT in part.text for part in together["trace.correctness"]].count(True) == 1
