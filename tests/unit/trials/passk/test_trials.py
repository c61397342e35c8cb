"""Trials of a case and their success."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import EvaluatorInfo, Result, Unit, now
from pandaeval_collector.base.score import Score
from pandaeval_lab.passk.attempts import trials
from support.repeated import trial, trials_of


def step(session: str | None, trace: str, passed: bool | None, **about: Any) -> dict[str, Any]:
    return {
        "metric": "task_completion",
        "level": "trace",
        "outcome": "scored" if passed is not None else "unscored",
        "success": passed,
        "session_id": session,
        "trace_id": trace,
        "metadata": about,
    }


def test_attempts_are_counted_by_case() -> None:
    found = trials(trials_of({"b": [True, False, None], "a": [True]}))
    assert (found.metric, found.per) == ("trial.trial_correct", "case")
    assert [(case.id, case.n, case.c, case.undetermined) for case in found.cases] == [("a", 1, 1, 0), ("b", 2, 1, 1)]


def test_traces_of_one_attempt_are_one_trial_that_succeeds_if_all_succeed() -> None:
    results = [
        step(None, "1", True, case="a", trial="x"),
        step(None, "2", False, case="a", trial="x"),
        step(None, "3", True, case="a", trial="y"),
        step(None, "4", True, case="a", trial="y"),
        step(None, "5", True, case="a", trial="z"),
        step(None, "6", None, case="a", trial="z"),
    ]
    (case,) = trials(results, "task_completion").cases
    assert (case.n, case.c, case.undetermined) == (2, 1, 1)


def test_the_same_attempt_in_two_sessions_is_two_trials() -> None:
    results = [step("s1", "1", True, case="a", trial="1"), step("s2", "2", False, case="a", trial="1")]
    (case,) = trials(results).cases
    assert (case.n, case.c) == (2, 1)


def test_per_conversation_counts_steps_and_ignores_whole_trials() -> None:
    results = [*trials_of({"a": [True]}), step("s", "1", True), step("s", "2", False)]
    found = trials(results, per="conversation")
    assert (found.metric, [(case.id, case.n, case.c) for case in found.cases]) == (
        "trace.task_completion",
        [("s", 2, 1)],
    )
    with pytest.raises(UserError, match=r"trial_correct that can be a trial.*it has trace\.task_completion"):
        trials(results, "trial_correct", "conversation")
    with pytest.raises(UserError, match="about a step of a conversation"):
        trials(trials_of({"a": [True]}), per="conversation")


def test_without_a_trial_name_each_trace_is_a_trial() -> None:
    (case,) = trials([step(None, "1", True, case="a"), step(None, "2", False, case="a")]).cases
    assert (case.n, case.c) == (2, 1)


def test_a_result_of_a_session_belongs_to_the_case_of_its_traces() -> None:
    whole = {"metric": "agent_reliability", "level": "session", "outcome": "scored", "success": True}
    results = [step("s1", "1", True, case="a", trial="1"), {**whole, "session_id": "s1", "metadata": {}}]
    (case,) = trials(results, "agent_reliability").cases
    assert (case.id, case.n, case.c) == ("a", 1, 1)


def test_the_newest_revision_counts() -> None:
    first, second = trial("a", "1", True, revision=1), trial("a", "1", False, revision=2)
    for results in ([first, second], [second, first]):
        (case,) = trials(results).cases
        assert (case.n, case.c) == (1, 0)


def test_an_assumed_result_is_undetermined() -> None:
    assumed = {**step(None, "1", True, case="a", trial="1"), "outcome": "assumed"}
    beside = step(None, "2", True, case="a", trial="2"), {**step(None, "3", True, case="a", trial="2")}
    (case,) = trials([assumed, *beside]).cases
    assert (case.n, case.c, case.undetermined) == (1, 1, 1)


def test_without_cases_each_conversation_is_a_case_and_its_steps_are_trials() -> None:
    results = [step("s1", "1", True), step("s1", "2", False), step("s2", "3", True)]
    found = trials(results)
    assert found.per == "conversation"
    assert [(case.id, case.n, case.c) for case in found.cases] == [("s1", 2, 1), ("s2", 1, 1)]


@pytest.mark.parametrize(
    ("results", "asked", "message"),
    [
        ([], {}, "no results"),
        ([step(None, "1", True)], {}, "using_case"),
        ([step("s", "1", True)], {"per": "case"}, "--per conversation"),
        ([step("s", "1", True), {**step("s", "1", True), "metric": "coherence"}], {}, "--metric"),
        ([step("s", "1", True)], {"metric": "coherence"}, "trace.task_completion"),
        ([step("s", "1", True), {**step("s", "1", True), "level": "turn"}], {"metric": "task_completion"}, "level"),
    ],
)
def test_results_that_cannot_be_counted_are_an_error(results: list[Any], asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trials(results, **asked)


def test_a_trace_result_contains_its_case_and_trial() -> None:
    unit = Unit("trace", "t", "t", "s", case="refund", trial="2").with_evidence("e")
    made = Result("id", "m", unit, Score(1.0), EvaluatorInfo("code", "1"), 0.5, 1, True, 0.0, now()).to_dict()
    assert (made["metadata"]["case"], made["metadata"]["trial"]) == ("refund", "2")
    (case,) = trials([made]).cases
    assert (case.id, case.n, case.c) == ("refund", 1, 1)


def test_each_result_of_a_whole_trial_is_a_trial() -> None:
    results = [trial("a", "1", passed, trace_id=str(passed), session_id="s") for passed in (True, False)]
    (case,) = trials(results).cases
    assert (case.n, case.c) == (2, 1)
