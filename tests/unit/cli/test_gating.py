"""Gates over whole runs, with incidents."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.config import Config
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.unscored import CURES
from pandaeval_collector.store.failures import Failure
from pandaeval_lab.cli._formats import JsonLines
from pandaeval_lab.cli._gates import GateOutcome, _silent, checked, outcome_of, severity_gate, unscored_notes
from pandaeval_lab.cli._names import with_trials
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause
from support.results import CODE, result

NO_SESSION = (
    "passes unmeasured: no trace of the input has a session id; have the application set gen_ai.conversation.id (or "
    "session.id) on its spans"
)


def config(**sections: Any) -> Config:
    return with_trials(Config.model_validate(sections))


def summary(*results: Result, sessions: bool = True, agents_traces: int = 1) -> Summary:
    made = Summary()
    made.agents_traces, made.has_sessions = agents_traces, sessions
    for each in results:
        made.take(each, each.to_dict())
    return made


def group(severity: str, title: str = "Made-up weather", failures: int = 1) -> RootCause:
    members = [
        Failure(f"r{n}", "m", "false information", "It was made up.", trace_id=f"{n:02}" * 16) for n in range(failures)
    ]
    return RootCause(title, "It answers without data.", severity, tuple(members))


class TestSeverity:
    @pytest.mark.parametrize(
        ("severities", "least", "grave"),
        [
            ([], "low", 0),
            (["critical"], None, 0),
            (["low", "medium"], "high", 0),
            (["critical", "low", "high"], "high", 2),
            (["low"], "low", 1),
        ],
    )
    def test_the_gate_fails_if_an_incident_has_at_least_this_severity(
        self, severities: list[str], least: str | None, grave: int
    ) -> None:
        found = severity_gate([group(each) for each in severities], least)
        assert (found.key, found.passed, len(found.examples)) == ("failures", not grave, grave)
        assert (found.text == "") is found.passed

    def test_the_gate_lists_three_incidents_with_their_traces(self) -> None:
        groups = [group("high", f"cause {n}", n + 1) for n in range(5)]
        assert severity_gate(groups, "medium") == GateOutcome(
            "failures",
            False,
            "failures (fail_on_error_severity medium): 5 incidents with this severity or a higher severity",
            (
                "[high] cause 0 (1 occurrence(s)): trace 000000000000",
                "[high] cause 1 (2 occurrence(s)): trace 000000000000, trace 010101010101",
                "[high] cause 2 (3 occurrence(s)): trace 000000000000, trace 010101010101, trace 020202020202",
            ),
        )


class TestJsonLines:
    def test_each_failed_result_is_written_with_its_incident_or_null(self) -> None:
        results = [result(id=f"r{n}", finding=Score(0.1, metadata={"mine": n})) for n in range(3)]
        both = group("high", failures=2)
        stage = JsonLines(None)
        stage._target = written = io.StringIO()
        stage._failed += results
        stage.finish(SimpleNamespace(summary=SimpleNamespace(groups=[both])))  # type: ignore[arg-type]
        lines = written.getvalue().splitlines()
        for held, each, of in zip(lines, results, (both, both, None), strict=True):
            whole = json.loads(each.to_json())
            whole["metadata"]["failure_group"] = None if of is None else of.to_dict()
            assert json.loads(held) == whole


class TestChecked:
    def test_every_threshold_is_checked_before_the_severity_gate(self) -> None:
        thresholds = {"trace.coherence": 0.5, "trace.tool_loop": 0.9, "session.agent_reliability": 0.5}
        run = summary(
            result("tool_loop", Score(0.25, "x" * 300), evaluator=CODE, trace_id="ab" * 16),
            result("tool_loop", Score(0.75, "twice"), evaluator=CODE, trace_id="cd" * 16),
            result(),
            sessions=False,
        )
        run.groups = (group("high"),)
        found = checked(config(metrics={"thresholds": thresholds}, gates={"fail_on_error_severity": "high"}), run)
        assert [(each.key, each.passed) for each in found] == [
            ("trace.coherence", True),
            ("trace.tool_loop", False),
            ("session.agent_reliability", True),
            ("failures", False),
        ]
        assert found[1].text == (
            "trace.tool_loop (threshold 0.9): the mean of 2 scores is 0.5000; --format json shows all of them, "
            "--format html shows the failures"
        )
        assert found[1].examples == (f"0.25 in trace {'ab' * 16}: {'x' * 199}…", f"0.75 in trace {'cd' * 16}: twice")
        assert found[2].text == f"session.agent_reliability (threshold 0.5): {NO_SESSION}"
        assert found[3] == severity_gate(run.groups, "high")

    @pytest.mark.parametrize(("most", "passes"), [(0.5, True), (0.4, False)])
    def test_the_allowed_share_without_a_score_is_configurable(self, most: float, passes: bool) -> None:
        run = summary(result(), result(finding=Unscored(Why.TIMEOUT), trace_id="ab" * 16))
        found = checked(config(metrics={"thresholds": {"trace.coherence": 0.5}}, gates={"max_unscored": most}), run)
        assert [each.passed for each in found] == [passes, True]

    def test_without_thresholds_only_the_severity_gate_is_checked(self) -> None:
        assert checked(config(), summary(result(finding=Score(0.0)))) == [GateOutcome("failures", True)]


ONLY = {"gen_ai.agent.name": ["nobody"]}
UNASKED = (True, "not checked: the metric is not selected (--metrics, metrics.enabled)")
NO_JUDGE = (False, "cannot be checked: no judge is configured; name a model with --model, or remove the threshold")
NO_TRACES = (True, "passes unmeasured: the input has no agent traces")
NO_TRIALS = (
    False,
    "cannot be checked: no trace of the input is a trial of a case; name a case file with --cases",
)


def nothing(needs: str, more: str = "") -> tuple[bool, str]:
    return True, f"passes unmeasured: the metric does not apply to the input (it needs {needs}){more}"


class TestMissingResults:
    """The first reason for a missing result."""

    @pytest.mark.parametrize(
        ("key", "sections", "run", "why"),
        [
            ("trace.tool_loop", {"metrics": {"enabled": ["coherence"]}}, summary(agents_traces=0), UNASKED),
            ("trace.task_completion", {"metrics": {"enabled": ["coherence"]}}, summary(), UNASKED),
            ("trace.task_completion", {}, summary(agents_traces=0), NO_JUDGE),
            ("trace.tool_loop", {"metrics": {"enabled": ["tool_loop"]}}, summary(agents_traces=0), NO_TRACES),
            ("trial.trial_correct", {}, summary(agents_traces=0), NO_TRACES),
            ("trial.trial_correct", {}, summary(result()), NO_TRIALS),
            ("session.agent_reliability", {}, summary(sessions=False), (True, NO_SESSION)),
            ("trace.loop_detection", {}, summary(sessions=False), (True, NO_SESSION)),
            ("trace.tool_loop", {}, summary(sessions=False), nothing("tool calls")),
            ("trace.tool_loop", {"judge": {"only": ONLY}}, summary(), nothing("tool calls")),
        ],
    )
    def test_the_first_reason_decides_whether_the_gate_passes(
        self, key: str, sections: dict[str, Any], run: Summary, why: tuple[bool, str]
    ) -> None:
        assert _silent(config(**sections), run, key) == why

    def test_a_trial_metric_without_results_passes_if_the_input_has_trials(self) -> None:
        run = summary(result("exit_code", level="trial"))
        passed, why = _silent(config(), run, "trial.trial_correct")
        assert passed
        assert why.startswith("passes unmeasured: the metric does not apply to the input (it needs ")

    @pytest.mark.parametrize(
        ("only", "is_named"),
        [
            ({}, False),
            ({"gen_ai.agent.name": ["nobody"]}, True),
        ],
    )
    def test_judge_only_is_named_as_a_possible_reason_if_it_is_set(
        self, monkeypatch: pytest.MonkeyPatch, only: dict[str, Any], is_named: bool
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        judged = config(judge={"model": "openai/none", "only": only, "detail": "all"})
        passed, why = _silent(judged, summary(), "trace.argument_correctness")
        assert passed
        assert why.startswith("passes unmeasured: the metric does not apply to the input (it needs ")
        assert why.endswith("); judge.only excludes traces" if is_named else ")")

    def test_judge_detail_is_named_as_a_reason_only_without_a_threshold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        judge = {"model": "openai/none"}
        key = "trace.argument_correctness"
        _, why = _silent(config(judge=judge), summary(), key)
        assert "the judge was not asked (judge.detail: failing); set judge.detail to all" in why
        _, why = _silent(config(judge=judge, metrics={"thresholds": {key: 0.9}}), summary(), key)
        assert "judge.detail" not in why


class TestUnanswered:
    def notes(self, *asked: str, given: Iterable[Result] = (), **sections: Any) -> list[str]:
        return [*unscored_notes(config(**sections), summary(*given, sessions=False), asked)]

    def test_each_metric_without_results_gets_a_sentence_in_order(self) -> None:
        assert self.notes("loop_detection", "coherence", "trace.tool_loop", given=[result()]) == [
            f"trace.loop_detection has no result: {NO_SESSION.removeprefix('passes unmeasured: ')}",
            f"turn.coherence has no result: {NO_JUDGE[1]}",
            "trace.tool_loop has no result: the metric does not apply to the input (it needs tool calls)",
        ]

    def test_a_metric_that_cannot_be_checked_gets_its_reason(self) -> None:
        assert self.notes("trace.task_completion") == [f"trace.task_completion has no result: {NO_JUDGE[1]}"]

    def test_an_unscored_or_assumed_result_counts_as_a_result(self) -> None:
        assert self.notes("trace.coherence", given=[result(finding=Unscored(Why.NO_CONTENT))]) == []
        assert self.notes("trace.coherence", given=[result(finding=Assumed("nothing"))]) == []

    def test_a_name_means_a_trial_metric_if_it_is_full_or_if_there_are_trials(self) -> None:
        assert self.notes("trial_correct") == []
        assert self.notes("trial.trial_correct", given=[result()]) == [
            f"trial.trial_correct has no result: {NO_TRIALS[1]}"
        ]
        [note] = self.notes("trial_correct", given=[result("exit_code", level="trial")])
        assert note.startswith("trial.trial_correct has no result: the metric does not apply to the input (it needs ")


class TestSentences:
    """The full gate sentences."""

    @pytest.mark.parametrize(
        ("outcomes", "mean", "passed", "text"),
        [
            ({("scored", ""): 1}, 0.5, True, ""),
            (
                {("scored", ""): 1},
                0.25,
                False,
                "the mean of 1 score is 0.2500; --format json shows all of them, --format html shows the failures",
            ),
            (
                {("scored", ""): 2, ("unscored", "timeout"): 2, ("unscored", "no_content"): 9},
                0.75,
                False,
                "2 of 4 results have no score (50%, and gates.max_unscored is 20%), most often because of timeout. "
                f"{CURES['timeout']}",
            ),
            (
                {("assumed", ""): 1},
                None,
                True,
                "passes unmeasured: there was nothing to evaluate in 1 result (assumed)",
            ),
            (
                {("assumed", ""): 2, ("unscored", "no_content"): 2, ("unscored", "not_sampled"): 1},
                None,
                False,
                f"none of 3 results has a score (no_content 2, not_sampled 1). {CURES['no_content']}",
            ),
            (
                {("unscored", "not_sampled"): 1, ("unscored", "no_content"): 1},
                None,
                False,
                f"none of 2 results has a score (not_sampled 1, no_content 1). {CURES['not_sampled']}",
            ),
        ],
    )
    def test_each_gate_outcome_has_its_sentence(
        self, outcomes: dict[tuple[str, str], int], mean: float | None, passed: bool, text: str
    ) -> None:
        tally = OutcomeCounts()
        for (outcome, why), count in outcomes.items():
            tally.add(outcome, None, why, count)
        assert outcome_of(0.5, 0.2, tally, mean or 0.0) == (passed, text)
