"""The regression gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pandaeval_collector.analysis.stats.paired import PairedDifference
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import app
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials, trials
from pandaeval_lab.passk.gate import Drop, GateVerdict, Rules, _credible, _failures, compared, drop
from support.repeated import trial, trials_of
from support.reports import parsed
from support.trials import run, write

GOOD = {f"case {at:02}": [True] * 4 for at in range(12)}
WORSE = {**GOOD, **{f"case {at:02}": [True, False, False, True] for at in range(6)}}


def verdict(before: Any, now: Any, rules: Rules | None = None, kind: str = "") -> GateVerdict:
    return compared(trials(trials_of(before, kind)), trials(trials_of(now, kind)), rules or Rules())


class TestRules:
    def test_no_change_passes(self) -> None:
        found = verdict(GOOD, GOOD)
        assert found.passed
        assert "+0.000" in found.text

    def test_a_credible_drop_fails_and_one_failed_trial_passes(self) -> None:
        found = verdict(GOOD, WORSE)
        assert not found.passed
        assert "more than chance explains" in found.failures[0]
        assert "95 % interval" in found.text
        assert verdict(GOOD, {**GOOD, "case 00": [True, True, True, False]}).passed

    def test_an_improvement_passes_however_credible(self) -> None:
        assert verdict(WORSE, GOOD).passed

    def test_a_drop_over_max_drop_fails_even_if_not_significant(self) -> None:
        slightly = {**GOOD, "case 00": [True, True, False, False]}
        assert verdict(GOOD, slightly, Rules(max_drop=0.05)).passed
        found = verdict(GOOD, slightly, Rules(max_drop=0.04))
        assert ["larger than 0.04" in sentence for sentence in found.failures] == [True]

    @pytest.mark.parametrize(("kind", "passes"), [("regression", False), ("capability", True), ("", True)])
    def test_a_broken_regression_case_fails_even_if_other_cases_improve(self, kind: str, passes: bool) -> None:
        noisy = {f"case {at:02}": [True, True, False, False] for at in range(12)}
        better = {f"case {at:02}": [True, True, True, False] for at in range(12)}
        found = verdict({**noisy, "kept": [True] * 5}, {**better, "kept": [False] * 5}, kind=kind)
        assert found.drop is not None
        assert found.drop.p > 0.05
        assert found.passed is passes
        assert found.broken == ([] if passes else ["kept"])
        assert found.notice == ""

    def test_a_case_with_three_baseline_trials_can_break(self) -> None:
        assert verdict({"kept": [True] * 3}, {"kept": [False] * 7}, kind="regression").broken == ["kept"]

    @pytest.mark.parametrize(("before", "now"), [(1, 1), (2, 2), (2, 60), (1, 400), (4, 1), (4, 4)])
    def test_a_case_that_may_have_broken_by_chance_is_only_a_notice(self, before: int, now: int) -> None:
        noisy = {f"case {at:02}": [True, True, False, False] for at in range(12)}
        found = verdict({**noisy, "kept": [True] * before}, {**noisy, "kept": [False] * now}, kind="regression")
        assert (found.broken, found.doubtful, found.failures) == ([], ["kept"], [])
        assert found.notice == (
            "passed every trial of the baseline, but fails every trial now, "
            "which can be chance with so few trials: kept"
        )

    def test_the_drop_uses_the_whole_level_if_no_case_can_break(self) -> None:
        assert verdict(GOOD, WORSE, kind="regression").share == 1.0
        assert verdict(GOOD, {**GOOD, "case 03": [False] * 5}, kind="capability").share == 1.0
        assert verdict({"a": [True] * 5}, {"a": [False] * 5}, kind="regression").share == 0.8

    def test_a_regression_case_that_still_passes_once_is_not_broken(self) -> None:
        assert verdict(GOOD, {**GOOD, "case 03": [True, False]}, kind="regression").passed

    def test_missing_or_undetermined_cases_fail(self) -> None:
        some = {name: passed for name, passed in GOOD.items() if name < "case 08"}
        found = verdict(GOOD, some)
        assert len(found.missing) == 4
        assert "4 of 12 cases of the baseline" in found.failures[0]
        assert verdict(GOOD, some, Rules(max_missing=0.5)).passed
        untold = {name: [None] for name in GOOD}
        assert "no comparison" in verdict(GOOD, untold).failures[0]

    def test_too_many_undetermined_trials_fail(self) -> None:
        untold = {name: [True, None, None, None] for name in GOOD}
        found = verdict(GOOD, untold)
        assert (found.missing, found.undetermined, found.tried) == ([], 36, 48)
        assert ["36 of 48 trials" in sentence for sentence in found.failures] == [True]
        assert verdict(GOOD, untold, Rules(max_missing=0.75)).passed
        assert verdict(GOOD, {**GOOD, "case 00": [True, None, None, None]}).passed

    def test_comparing_different_metrics_is_an_error(self) -> None:
        other = trials([{**trial("a", "1", True), "metric": "end_state"}])
        with pytest.raises(UserError, match="end_state"):
            compared(trials(trials_of(GOOD)), other, Rules())


def _verdict(mean: float, p: float, **fields: Any) -> GateVerdict:
    found = Drop(p, PairedDifference(4, 4, mean, None, None), 4)
    return GateVerdict("m", found, **{"broken": [], "missing": [], "new": [], **fields})


class TestEdges:
    @pytest.mark.parametrize(
        ("mean", "p", "passes"),
        [
            (-0.1, 0.05, False),
            (-0.1, 0.0501, True),
            (0.0, 0.01, True),
            (0.1, 0.01, True),
            (-1e-6, 0.01, False),
        ],
    )
    def test_a_drop_fails_if_p_is_at_most_the_level(self, mean: float, p: float, passes: bool) -> None:
        assert (list(_failures(_verdict(mean, p), Rules(), 4)) == []) is passes

    @pytest.mark.parametrize(("p", "passes"), [(0.04, False), (0.0401, True)])
    def test_a_drop_is_tested_at_its_share_of_the_level(self, p: float, passes: bool) -> None:
        assert (list(_failures(_verdict(-0.1, p, share=0.8), Rules(), 4)) == []) is passes

    @pytest.mark.parametrize(
        ("mean", "passes"),
        [(-0.1, True), (-0.1 - 1e-9, True), (-0.1 - 2e-9, False), (-0.101, False), (0.5, True)],
    )
    def test_max_drop_has_a_tolerance_of_1e_9(self, mean: float, passes: bool) -> None:
        found = list(_failures(_verdict(mean, 1.0), Rules(max_drop=0.1), 4))
        assert (found == []) is passes
        assert passes or found[0].startswith(f"the drop of {-mean:.3f} is larger than 0.1 ")

    @pytest.mark.parametrize(("missing", "passes"), [(2, True), (3, False)])
    def test_up_to_a_fifth_of_the_cases_can_be_missing(self, missing: int, passes: bool) -> None:
        found = list(_failures(_verdict(0.0, 1.0, missing=["a", "b", "c"][:missing]), Rules(), 10))
        assert (found == []) is passes
        assert passes or found == ["3 of 10 cases of the baseline have no determined trial now: a, b, c"]

    @pytest.mark.parametrize(("undetermined", "passes"), [(2, True), (3, False)])
    def test_up_to_a_fifth_of_the_trials_can_be_undetermined(self, undetermined: int, passes: bool) -> None:
        found = list(_failures(_verdict(0.0, 1.0, undetermined=undetermined, tried=10), Rules(), 4))
        assert (found == []) is passes

    @pytest.mark.parametrize(
        ("names", "listed"),
        [("a", "a"), ("abcde", "a, b, c, d, e"), ("abcdefg", "a, b, c, d, e and 2 more")],
    )
    def test_a_failure_lists_at_most_five_names(self, names: str, listed: str) -> None:
        [sentence] = _failures(_verdict(0.0, 1.0, broken=[*names]), Rules(), 4)
        assert sentence == f"passed every trial of the baseline, but fails every trial now: {listed}"

    def test_without_common_cases_the_only_failure_is_that_nothing_can_be_compared(self) -> None:
        empty = GateVerdict("m", None, [], ["a"] * 9, [], 9, 9)
        assert list(_failures(empty, Rules(max_drop=0.0), 9)) == [
            "no comparison: no case has a determined trial both now and in the baseline"
        ]
        assert empty.text == "no case has a determined trial both now and in the baseline"

    def test_the_text_contains_the_interval_if_there_is_one(self) -> None:
        known = GateVerdict("m", Drop(0.03, PairedDifference(4, 4, -0.25, -0.5, 0.0), 3), [], [], [])
        assert known.text == (
            "m against the baseline: -0.250 (95 % interval -0.500 to +0.000), p = 0.0300; "
            "3 of 4 cases had both successes and failures"
        )
        assert "interval" not in _verdict(-0.25, 0.03).text

    def test_missing_and_new_cases_are_listed_without_undetermined_cases(self) -> None:
        before = {"b": [True], "a": [True], "both": [True, False], "untold": [None]}
        found = verdict(before, {"new": [True], "both": [True, None], "a": [None], "newer": [False]})
        assert (found.missing, found.new, found.undetermined, found.tried) == (["a", "b"], ["new", "newer"], 1, 2)
        assert found.metric == "trial.trial_correct"

    @pytest.mark.parametrize(
        ("old", "new", "broke"),
        [([True], [False], True), ([True, False], [False], False), ([True], [True, False], False)],
    )
    def test_a_case_is_broken_if_it_passed_all_trials_and_now_fails_all(
        self, old: list[bool], new: list[bool], broke: bool
    ) -> None:
        found = verdict({"a": old}, {"a": new}, kind="regression")
        assert found.broken + found.doubtful == (["a"] if broke else [])


def case(name: str, n: int, c: int, kind: str = "regression") -> CaseOutcomes:
    """Return a case with trials and successes."""
    return CaseOutcomes(name, {(str(at), ""): at < c for at in range(n)}, kind)


class TestCredible:
    """Cases whose break would be credible at a level."""

    @pytest.mark.parametrize(
        ("old", "new", "could"),
        [
            (case("a", 4, 4), case("a", 4, 0), True),
            (case("a", 4, 0), case("a", 4, 4), True),
            (case("a", 4, 2), case("a", 4, 2), True),
            (case("a", 4, 4), case("a", 4, 1), False),
            (case("a", 4, 3), case("a", 4, 0), False),
            (case("a", 4, 4, ""), case("a", 4, 0, "regression"), True),
            (case("a", 4, 4, "regression"), case("a", 4, 0, ""), True),
            (case("a", 4, 4, "capability"), case("a", 4, 0, ""), False),
            (case("a", 3, 3), case("a", 5, 0), True),
            (case("a", 2, 2), case("a", 50, 0), False),
        ],
    )
    def test_a_case_can_break_with_three_baseline_trials_and_as_many_successes_in_total(
        self, old: CaseOutcomes, new: CaseOutcomes, could: bool
    ) -> None:
        assert _credible([(old, new)], 1.0) == ({"a"} if could else set())

    @pytest.mark.parametrize(("level", "credible"), [(1 / 70, {"a"}), (1 / 71, set()), (0.0, set()), (1.0, {"a"})])
    def test_the_chance_of_a_broken_case_is_one_in_the_number_of_splits(self, level: float, credible: set[str]) -> None:
        assert _credible([(case("a", 4, 4), case("a", 4, 0))], level) == credible

    @pytest.mark.parametrize(
        ("level", "credible"),
        [(1 / 253, set()), (1 / 252, {"seldom"}), (1 / 50, {"seldom", "a"}), (1 / 30, {"seldom", "a", "b"})],
    )
    def test_the_least_likely_cases_use_up_the_level_first(self, level: float, credible: set[str]) -> None:
        both = [(case(name, 4, 4), case(name, 4, 0)) for name in ("b", "a")]
        assert _credible([*both, (case("seldom", 5, 5), case("seldom", 5, 0))], level) == credible


class TestCompared:
    def test_the_verdict_contains_broken_doubtful_missing_and_new_cases(self) -> None:
        before = {"kept": [True] * 6, "few": [True], "gone": [True], "steady": [True, False, None]}
        now = {"kept": [False] * 6, "few": [False], "new": [True], "steady": [True, None]}
        found = verdict(before, now, Rules(max_missing=1.0), kind="regression")
        difference = drop([(1, 1), (6, 6), (2, 1)], [(1, 0), (6, 0), (1, 1)])
        assert difference is not None
        assert found == GateVerdict(
            "trial.trial_correct",
            difference,
            broken=["kept"],
            missing=["gone"],
            new=["new"],
            undetermined=1,
            tried=9,
            failures=[
                "passed every trial of the baseline, but fails every trial now: kept",
                f"the drop of 0.500 is more than chance explains (p = {difference.p:.4f}, level 0.04)",
            ],
            doubtful=["few"],
            share=0.8,
        )

    @pytest.mark.parametrize(("level", "broken"), [(0.05, []), (0.08, ["kept"])])
    def test_broken_cases_are_tested_at_a_fifth_of_the_level(self, level: float, broken: list[str]) -> None:
        found = verdict({"kept": [True] * 4}, {"kept": [False] * 4}, Rules(level=level), kind="regression")
        assert (found.broken, found.broken + found.doubtful) == (broken, ["kept"])

    @pytest.mark.parametrize(
        ("before", "now", "message"),
        [
            (("trial.a", "case"), ("trial.b", "case"), "the baseline counts trial.a by case, this trial.b by case"),
            (
                ("trial.a", "case"),
                ("trial.a", "conversation"),
                "the baseline counts trial.a by case, this trial.a by conversation",
            ),
        ],
    )
    def test_comparing_different_metrics_or_units_is_an_error(
        self, before: tuple[str, Any], now: tuple[str, Any], message: str
    ) -> None:
        with pytest.raises(UserError) as refused:
            compared(CaseTrials(*before, (case("a", 1, 1),)), CaseTrials(*now, (case("a", 1, 1),)), Rules())
        assert str(refused.value) == message

    def test_each_failure_is_a_sentence(self) -> None:
        found = _verdict(-0.25, 0.01, missing=[*"abcdef"], undetermined=5, tried=8, broken=["x"])
        assert list(_failures(found, Rules(level=0.05, max_drop=0.1, max_missing=0.5), 8)) == [
            "passed every trial of the baseline, but fails every trial now: x",
            "the drop of 0.250 is more than chance explains (p = 0.0100, level 0.05)",
            "the drop of 0.250 is larger than 0.1 (gates.baseline.max_drop)",
            "6 of 8 cases of the baseline have no determined trial now: a, b, c, d, e and 1 more",
            "5 of 8 trials at the compared cases could not be graded, more than gates.max_unscored allows; the rates "
            "do not include these trials",
        ]


def invoke(*arguments: str, code: int) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == code, found.output
    return found.stderr


class TestEvaluate:
    SUITE = "cases:\n- {id: send, kind: regression, inputs: {task: Send}, forbidden_tools: [delete_it]}\n"

    def evaluate(self, folder: Path, called: str, *options: str, code: int) -> str:
        (folder / "suite.yaml").write_text(self.SUITE)
        runs = [run(at, case="send", trial=str(at), calls=[(called, {})]) for at in range(1, 4)]
        traces, suite = write(folder / f"{called}.jsonl", runs), folder / "suite.yaml"
        arguments = ("evaluate", str(traces), "--cases", str(suite), "--metrics", "trial_correct", *options)
        format_ = () if "--format" in options else ("--format", "json")
        return invoke(*arguments, *format_, "--output", str(folder / f"{called}.out"), code=code)

    def test_trials_are_compared_with_a_baseline(self, tmp_path: Path) -> None:
        self.evaluate(tmp_path, "send_it", code=0)
        before = "--baseline", str(tmp_path / "send_it.out")
        assert json.loads((tmp_path / "send_it.out").read_text().splitlines()[0])["metadata"]["case"] == "send"
        assert "baseline: trial.trial_correct" in self.evaluate(tmp_path, "send_it", *before, code=0)
        output = self.evaluate(tmp_path, "delete_it", *before, code=1)
        assert "failed: the drop of 1.000 is more than chance explains" in output
        assert "notice: passed every trial of the baseline, but fails every trial now" in output

    def test_a_failed_baseline_is_in_the_log_junit_and_html(self, tmp_path: Path) -> None:
        self.evaluate(tmp_path, "send_it", code=0)
        before = "--baseline", str(tmp_path / "send_it.out")
        output = self.evaluate(tmp_path, "delete_it", *before, "--format", "junit", code=1)
        assert "failed: the drop of 1.000" in output
        root = ElementTree.parse(tmp_path / "delete_it.out").getroot()
        [case] = root.findall(".//testcase[@name='baseline']")
        assert "the drop of 1.000" in case.find("failure").attrib["message"]  # type: ignore[union-attr]
        self.evaluate(tmp_path, "delete_it", *before, "--format", "html", code=1)
        gates = parsed((tmp_path / "delete_it.out").read_text()).index["about"]["gates"]
        assert ["baseline: the drop" in each for each in gates] == [True]

    def test_max_drop_is_set_by_the_configuration(self, tmp_path: Path) -> None:
        self.evaluate(tmp_path, "send_it", code=0)
        config = tmp_path / "c.yaml"
        options = "--baseline", str(tmp_path / "send_it.out"), "--config", str(config)
        config.write_text("gates: {baseline: {max_drop: null}}")
        assert "gates.baseline.max_drop" not in self.evaluate(tmp_path, "delete_it", *options, code=1)
        config.write_text("gates: {baseline: {max_drop: 0.1}}")
        assert "gates.baseline.max_drop" in self.evaluate(tmp_path, "delete_it", *options, code=1)

    def test_an_empty_baseline_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "empty").write_text("")
        assert "no results" in self.evaluate(tmp_path, "send_it", "--baseline", str(tmp_path / "empty"), code=2)
