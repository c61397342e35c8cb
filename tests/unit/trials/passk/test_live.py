"""What a running collector shows of repeated cases and of streams, and what is left of it after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.analysis.stats.stream import StreamGate
from pandaeval_collector.base.result import EvaluatorInfo, Result, Unit, now
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.stats import pass_pow_k
from pandaeval_collector.store import ResultRow, Store
from pandaeval_collector.trials.passk import live as module
from pandaeval_collector.trials.passk.live import (
    MOST_AGENTS,
    MOST_CASES,
    MOST_UNITS,
    OTHER,
    LiveGates,
    LiveTrials,
    Monitor,
)
from pandaeval_otel.base.names import bounded

METRIC = "trace.task_completion"


def row(
    trace: str, finding: Finding | bool, case: str = "", trial: str = "", agent: str = "a", **more: Any
) -> ResultRow:
    if isinstance(finding, bool):
        finding = Score(float(finding))
    unit = Unit("trace", trace, trace, "s", case=case, trial=trial, agent=agent, session_id=more.pop("session", None))
    made = Result(trace, "task_completion", unit, finding, EvaluatorInfo("llm", "1"), 0.5, 1, True, 0.0, now())
    return ResultRow(trace, trace, METRIC, more.get("revision", 1), made.to_json(), success=made.success)


def live(telemetry: Telemetry | None = None, window: int = 100) -> LiveTrials:
    return LiveTrials([METRIC], (1, 2), window, telemetry or Telemetry())


def of_case(watch: LiveTrials, case: str) -> dict[str, float]:
    return {
        name.removeprefix("pandaeval.pass_pow_k") + dict(about).get("k", ""): value
        for (name, about), value in watch.gauges().items()
        if dict(about)["pandaeval.case"] == case
    }


class TestTrials:
    def test_median_and_interval_of_each_case_and_k(self) -> None:
        watch = live()
        assert watch.take([row(str(at), at != 2, "refund", str(at)) for at in range(4)])
        found, expected = of_case(watch, "refund"), pass_pow_k(4, 3, 2, "bayesian")
        assert found[".trials"] == 4
        assert (found["2"], found[".ci_low2"], found[".ci_high2"]) == (
            pytest.approx(expected.median),
            pytest.approx(expected.ci_low),
            pytest.approx(expected.ci_high),
        )

    def test_what_a_part_of_a_trial_was_worth_is_taken_back(self) -> None:
        watch = live()
        watch.take([row("1", False, "refund", "7"), row("2", True, "refund", "8")])
        part = Unscored(Why.INSUFFICIENT_EVIDENCE, "a part", {"part_of": "3"})
        assert watch.take([row("1", part, "refund", "7"), row("3", True, "refund", "9")])
        assert of_case(watch, "refund")[".trials"] == 2
        assert len(watch.state()[METRIC]["refund"]) == 2

    def test_sessions_of_one_case_are_attempts_of_their_own(self) -> None:
        watch = live()
        watch.take([row(str(at), True, "refund", session=f"session {at}") for at in range(2)])
        assert of_case(watch, "refund")[".trials"] == 2
        watch.take([row("again", False, "refund", session="session 0")])
        assert of_case(watch, "refund")[".trials"] == 2

    def test_results_about_whole_trials_are_a_trial_each(self) -> None:
        watch = LiveTrials(["trial.task_completion"], (1,), 100, Telemetry())
        whole = [replace(row(str(at), True, "refund", "7"), metric="trial.task_completion") for at in range(2)]
        watch.take(whole)
        assert of_case(watch, "refund")[".trials"] == 2

    def test_a_part_of_a_trial_that_was_never_counted_takes_nothing_back(self) -> None:
        part = Unscored(Why.INSUFFICIENT_EVIDENCE, "a part", {"part_of": "3"})
        assert not live().take([row("1", part, "refund", "7")])

    def test_an_attempt_that_never_ends_is_held_in_little_and_forgets_no_failure(self) -> None:
        watch = live()
        watch.take([row(str(at), at != 3, "refund", "1") for at in range(3 * MOST_UNITS)])
        (units,) = watch.state()[METRIC]["refund"].values()
        assert len(units) <= MOST_UNITS + 1
        assert of_case(watch, "refund")[".trials"] == 1
        assert of_case(watch, "refund")["1"] == pytest.approx(pass_pow_k(1, 0, 1, "bayesian").median)

    def test_attributes_are_few(self) -> None:
        watch = live()
        watch.take([row("1", True, "refund", "1")])
        keys = {frozenset(dict(about)) for _, about in watch.gauges()}
        common = {"gen_ai.evaluation.name": "task_completion", "pandaeval.level": "trace", "pandaeval.case": "refund"}
        assert keys == {frozenset(common), frozenset({*common, "k"})}
        assert all(common.items() <= dict(about).items() for _, about in watch.gauges())

    def test_what_belongs_to_no_case_or_was_not_measured_is_no_trial(self) -> None:
        watch = live()
        assert not watch.take([row("1", True), row("2", Assumed("nothing to judge"), "refund", "1")])
        assert watch.gauges() == {}
        watch.take([row("3", Unscored(Why.TIMEOUT), "refund", "2")])
        assert of_case(watch, "refund") == {".trials": 0.0}

    def test_an_attempt_succeeds_if_all_of_its_traces_do_and_a_revision_replaces(self) -> None:
        watch = live()
        watch.take([row("1", True, "refund", "1", session="s"), row("2", False, "refund", "1", session="s")])
        assert of_case(watch, "refund")[".trials"] == 1
        before = of_case(watch, "refund")["1"]
        watch.take([row("2", True, "refund", "1", session="s", revision=2)])
        assert of_case(watch, "refund")[".trials"] == 1
        assert of_case(watch, "refund")["1"] > before

    def test_the_newest_trials_count(self) -> None:
        watch = live(window=5)
        watch.take([row(str(at), at < 50, "refund", str(at)) for at in range(55)])
        expected = pass_pow_k(5, 0, 1, "bayesian")
        assert of_case(watch, "refund")[".trials"] == 5
        assert of_case(watch, "refund")["1"] == pytest.approx(expected.median)

    def test_cases_are_capped_and_the_others_counted(self) -> None:
        telemetry = Telemetry()
        watch = live(telemetry)
        watch.take([row(str(at), True, f"case {at}", "1") for at in range(MOST_CASES + 3)])
        assert len({dict(about)["pandaeval.case"] for _, about in watch.gauges()}) == MOST_CASES
        assert telemetry.total("pandaeval.trials", "counted") == MOST_CASES
        assert telemetry.total("pandaeval.trials", "left_out") == 3
        [left_out] = [each for each in telemetry.measures() if ("pandaeval.outcome", "left_out") in each.attributes]
        assert dict(left_out.attributes)["pandaeval.reason"] == "too_many_cases"


class TestAttempts:
    """What is held of the attempts at a case, exactly. Names are printable: a tab is written out."""

    @pytest.mark.parametrize(
        ("about", "attempt"),
        [
            ({}, "u"),
            ({"trial": "7"}, "7\\t"),
            ({"session": "s"}, "\\ts"),
            ({"trial": "7", "session": "s"}, "7\\ts"),
            ({"trial": "n" * 500}, bounded("n" * 500 + "\t")),
        ],
    )
    def test_an_attempt_is_a_trial_in_a_session_or_else_the_trace(self, about: dict[str, str], attempt: str) -> None:
        watch = live()
        watch.take([row("u", True, "refund", **about)])
        assert watch.state() == {METRIC: {"refund": {attempt: {"u": True}}}}

    def test_names_are_bounded_and_numbers_are_names_too(self) -> None:
        watch, long = live(), "n" * 500
        named = Score(0.0, metadata={"case": 5, "trial": 0})
        again = Score(1.0, metadata={"case": 5, "trial": 2})
        watch.take([row(long, True, long), row("u", named), row("u", again)])
        assert watch.state() == {
            METRIC: {
                bounded(long): {bounded(long): {bounded(long): True}},
                "5": {"u": {"u": False}, "2\\t": {"u": True}},
            }
        }

    def test_the_last_word_on_each_trace_counts(self) -> None:
        watch = live()
        of = {"case": "refund", "trial": "7"}
        watch.take([row("1", True, **of), row("2", Unscored(Why.TIMEOUT), **of), row("3", False, **of)])
        watch.take([row("1", False, **of), row("3", Unscored(Why.TIMEOUT), **of)])
        assert watch.state() == {METRIC: {"refund": {"7\\t": {"1": False, "2": None, "3": None}}}}

    def test_only_rows_of_its_metrics_that_name_a_case_are_read(self) -> None:
        watch = live()
        other = replace(row("1", True, "refund"), metric="trace.other")
        unread = ResultRow("2", "2", METRIC, 1, b"no json", success=True)
        assert not watch.take([other, unread])
        assert not watch.take([])
        assert watch.take([other, row("3", True, "refund"), unread])
        assert [*watch.state()] == [METRIC]

    def test_each_attempt_is_counted_once(self) -> None:
        telemetry = Telemetry()
        watch = live(telemetry)
        for _ in range(2):
            watch.take([row("1", True, "refund", "7"), row("2", True, "refund", "7"), row("1", True, "other", "7")])
        assert telemetry.counts() == {("pandaeval.trials", "counted", ""): 2}

    @pytest.mark.parametrize(
        ("window", "tried", "left"),
        [(1, "ab", "b"), (2, "abc", "bc"), (2, "abab", "ab"), (2, "abac", "bc"), (3, "abc", "abc")],
    )
    def test_the_oldest_attempt_beyond_the_window_goes(self, window: int, tried: str, left: str) -> None:
        watch = live(window=window)
        for name in tried:
            watch.take([row("u", True, "refund", name)])
        assert [*watch.state()[METRIC]["refund"]] == [f"{name}\\t" for name in left]

    def test_a_smaller_window_takes_effect_with_the_next_attempt(self) -> None:
        before, watch = live(), live(window=2)
        before.take([row("u", True, "refund", name) for name in "abcd"])
        watch.restore(before.state())
        watch.take([row("u", True, "refund", "e")])
        assert [*watch.state()[METRIC]["refund"]] == ["d\\t", "e\\t"]

    @pytest.mark.parametrize(
        ("passed", "earlier"),
        [
            ("+++", "none"),
            ("++++", True),
            ("-+++", False),
            ("?+++", None),
            ("+++++", True),
            ("+?+++", None),
            ("?-+++", False),
            ("-?++++", False),
            ("++?-+++", False),
            ("?+++++", None),
        ],
    )
    def test_of_many_traces_the_oldest_are_remembered_as_one(
        self, monkeypatch: pytest.MonkeyPatch, passed: str, earlier: bool | str | None
    ) -> None:
        monkeypatch.setattr(module, "MOST_UNITS", 3)
        watch = live()
        verdicts: dict[str, Finding | bool] = {"+": True, "-": False, "?": Unscored(Why.TIMEOUT)}
        for at, each in enumerate(passed):
            watch.take([row(str(at), verdicts[each], "refund", "7")])
        newest = {str(at): True for at in range(len(passed) - 3, len(passed))}
        expected = newest if earlier == "none" else newest | {"": earlier}
        assert watch.state() == {METRIC: {"refund": {"7\\t": expected}}}

    def test_a_case_that_is_known_goes_on_when_there_are_as_many_as_there_may_be(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "MOST_CASES", 2)
        watch = live()
        taken = [watch.take([row(f"{at}", True, case)]) for at, case in enumerate("abcab")]
        assert taken == [True, True, False, True, True]
        assert watch.state() == {
            METRIC: {"a": {"0": {"0": True}, "3": {"3": True}}, "b": {"1": {"1": True}, "4": {"4": True}}}
        }

    def test_it_goes_on_from_a_state_with_the_metrics_that_are_asked_for(self) -> None:
        before = LiveTrials([METRIC, "trace.other"], (1,), 100, Telemetry())
        before.take([row("1", True, "refund"), replace(row("2", True, "refund"), metric="trace.other")])
        again = live()
        again.restore(json.loads(json.dumps(before.state())))
        assert again.state() == {METRIC: {"refund": {"1": {"1": True}}}}
        again.take([row("3", True, "refund")])
        assert of_case(again, "refund")[".trials"] == 2


class TestGauges:
    def test_each_case_has_its_trials_and_for_each_k_three_figures(self) -> None:
        metrics = [METRIC, "trial.end_state"]
        watch = LiveTrials(metrics, (1, 3), 100, Telemetry())
        verdicts: list[Finding | bool] = [True, True, False, Unscored(Why.TIMEOUT)]
        watch.take([row(str(at), each, "refund") for at, each in enumerate(verdicts)])
        watch.take([replace(row("1", True, "order"), metric="trial.end_state")])
        expected = {}
        for case, level, name, n, c in (
            ("refund", "trace", "task_completion", 3, 2),
            ("order", "trial", "end_state", 1, 1),
        ):
            name_, about = ("gen_ai.evaluation.name", name), (("pandaeval.case", case), ("pandaeval.level", level))
            expected["pandaeval.pass_pow_k.trials", (name_, *about)] = float(n)
            for k in (1, 3):
                found, labels = pass_pow_k(n, c, k, "bayesian"), (name_, ("k", str(k)), *about)
                expected["pandaeval.pass_pow_k", labels] = found.median
                expected["pandaeval.pass_pow_k.ci_low", labels] = found.ci_low
                expected["pandaeval.pass_pow_k.ci_high", labels] = found.ci_high
        assert watch.gauges() == expected

    def test_without_a_determined_trial_there_is_nothing_but_their_number(self) -> None:
        watch = live()
        watch.take([row("1", Unscored(Why.TIMEOUT), "refund")])
        about = (
            ("gen_ai.evaluation.name", "task_completion"),
            ("pandaeval.case", "refund"),
            ("pandaeval.level", "trace"),
        )
        assert watch.gauges() == {("pandaeval.pass_pow_k.trials", about): 0.0}


class TestStreams:
    def test_a_known_agent_goes_on_when_there_are_as_many_as_there_may_be(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "MOST_AGENTS", 2)
        watch = LiveGates([METRIC, "trace.other"], 0.9, 0.05)
        watch.take([row(f"{at}", True, agent=agent) for at, agent in enumerate("abcdab")])
        watch.take([replace(row("1", True, agent="z"), metric="trace.other")])
        held = {
            metric: {agent: gate["n"] for agent, gate in gates.items()}
            for metric, gates in watch.state()["gates"].items()
        }
        assert held == {METRIC: {"a": 2, "b": 2, OTHER: 2}, "trace.other": {"z": 1}}

    def test_an_agent_by_a_long_name_has_a_short_one(self) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        watch.take([row("1", True, agent="n" * 500)])
        assert [*watch.state()["gates"][METRIC]] == [bounded("n" * 500)]

    def test_its_state_is_that_of_its_gates(self) -> None:
        watch, gate = LiveGates([METRIC, "trace.other"], 0.9, 0.05), StreamGate(0.9, 0.05)
        watch.take([row("1", True), row("2", False)])
        gate.add(1.0)
        gate.add(0.0)
        gates = {METRIC: {"a": gate.state()}, "trace.other": {}}
        assert watch.state() == {"rate": 0.9, "level": 0.05, "gates": gates}

    def test_an_alarm_is_told_again_when_it_had_ended(self, caplog: pytest.LogCaptureFixture) -> None:
        watch, told = LiveGates([METRIC], 0.9, 0.05), []
        for passes in (False, True, False):
            watch.take([row(f"{passes}{at}", passes) for at in range(60)])
            assert self.gates(watch)["pandaeval.stream.alarm"] == float(not passes)
            told.append(len(caplog.records))
        assert told == [1, 1, 2]

    def gates(self, watch: LiveGates, agent: str = "a") -> dict[str, float]:
        return {name: value for (name, about), value in watch.gauges().items() if ("gen_ai.agent.name", agent) in about}

    def test_each_agent_has_a_gate_and_the_alarm_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        watch.take([row(f"a{at}", False, agent="a") for at in range(20)])
        watch.take([row(f"b{at}", True, agent="b") for at in range(20)])
        assert self.gates(watch)["pandaeval.stream.alarm"] == 1.0
        assert self.gates(watch)["pandaeval.stream.e_value"] >= 20
        assert self.gates(watch, "b")["pandaeval.stream.alarm"] == 0.0
        assert [record.message for record in caplog.records if "agent 'a'" in record.message][1:] == []
        assert len(caplog.records) == 1

    def test_revisions_and_what_has_no_verdict_tell_nothing(self) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        nothing = [row("1", False, revision=2), row("2", Unscored(Why.TIMEOUT)), row("3", Assumed("nothing"))]
        assert not watch.take(nothing)
        assert watch.gauges() == {}

    def test_gauges_are_by_metric_and_agent(self) -> None:
        watch = LiveGates([METRIC, "trial"], 0.9, 0.05)
        watch.take([row("1", True, agent="a"), row("2", False, agent="a"), row("3", True, agent="")])
        gate = StreamGate(0.9, 0.05)
        gate.add(1.0)
        gate.add(0.0)
        about = (("gen_ai.evaluation.name", "task_completion"), ("pandaeval.level", "trace"))
        found = watch.gauges()
        assert {attributes for _, attributes in found} == {(("gen_ai.agent.name", "a"), *about), about}
        assert {name: value for (name, attributes), value in found.items() if len(attributes) == 3} == {
            "pandaeval.stream.e_value": gate.e_value,
            "pandaeval.stream.alarm": 0.0,
            "pandaeval.stream.results": 2.0,
        }

    @pytest.mark.parametrize(
        ("rows", "taken"),
        [
            ([], False),
            ([row("1", True)], True),
            ([row("1", False)], True),
            ([row("1", True), row("2", Unscored(Why.TIMEOUT))], True),
            ([row("1", True, revision=2)], False),
            ([row("1", Assumed("nothing"))], False),
        ],
    )
    def test_it_tells_whether_anything_was_new(self, rows: list[ResultRow], taken: bool) -> None:
        assert LiveGates([METRIC], 0.9, 0.05).take(rows) is taken
        assert LiveGates(["trace.other"], 0.9, 0.05).take(rows) is False

    def test_its_state_is_json_and_holds_every_gate(self) -> None:
        watch = LiveGates([METRIC, "trace.other"], 0.9, 0.05)
        watch.take([row(str(at), at > 30, agent=f"{at % 2}") for at in range(40)])
        again = LiveGates([METRIC], 0.9, 0.05)
        again.restore(json.loads(json.dumps(watch.state())))
        assert again.gauges() == watch.gauges()
        for each in (watch, again):
            each.take([row("last", False, agent="1")])
        assert again.gauges() == watch.gauges(), "it goes on with the same rate and level"
        other = LiveGates([METRIC], 0.9, 0.1)
        other.restore(watch.state())
        assert other.gauges() == {}

    def test_the_alarm_is_told_in_full_and_again_after_it_ended(self, caplog: pytest.LogCaptureFixture) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        watch.take([row(f"a{at}", False) for at in range(6)])
        [record] = caplog.records
        assert record.message.startswith(f"{METRIC} of agent 'a' passes less often than 0.9 (gates.stream): evidence ")
        assert record.message.endswith("results")

    def test_a_level_that_allows_more_false_alarms_gives_one_sooner(self) -> None:
        watches = {level: LiveGates([METRIC], 0.9, level) for level in (0.5, 0.05, 0.001)}
        for watch in watches.values():
            watch.take([row(f"a{at}", False) for at in range(3)])
        evidence = {self.gates(watch)["pandaeval.stream.e_value"] for watch in watches.values()}
        assert len(evidence) == 1
        assert [self.gates(watch)["pandaeval.stream.alarm"] for watch in watches.values()] == [
            float(1 / level <= min(evidence)) for level in watches
        ]
        assert 2 <= min(evidence) < 1000

    def test_agents_are_capped(self) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        watch.take([row(str(at), True, agent=f"agent {at}") for at in range(MOST_AGENTS + 5)])
        assert self.gates(watch, OTHER)["pandaeval.stream.results"] == 5

    def test_another_rate_begins_anew(self) -> None:
        watch = LiveGates([METRIC], 0.9, 0.05)
        watch.take([row("1", False)])
        same, other = LiveGates([METRIC], 0.9, 0.05), LiveGates([METRIC], 0.8, 0.05)
        for each in (same, other):
            each.restore(watch.state())
        assert same.gauges() == watch.gauges()
        assert other.gauges() == {}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


async def test_what_was_learnt_outlives_a_restart(store: Store) -> None:
    def shown(telemetry: Telemetry) -> dict[str, float]:
        return {
            f"{each.instrument.name}{dict(each.attributes).get('k', '')}": each.value
            for each in telemetry.measures()
            if each.instrument.name.startswith(("pandaeval.pass_pow_k", "pandaeval.stream"))
        }

    first, second, third = Telemetry(), Telemetry(), Telemetry()
    monitor = Monitor(store, first, [live(first), LiveGates([METRIC], 0.9, 0.05)], 60.0)
    monitor.start()
    monitor.take([row("1", True, "refund", "1"), row("2", False, "refund", "2")])
    await monitor.stop()
    found = shown(first)
    assert found["pandaeval.pass_pow_k.trials"] == 2
    assert found["pandaeval.stream.results"] == 2

    again = Monitor(store, second, [live(second), LiveGates([METRIC], 0.9, 0.05)], 60.0)
    again.start()
    await again.stop()
    assert shown(second) == found

    await asyncio.wrap_future(store.put("live_trials", "[1]"))
    anew = Monitor(store, third, [live(third)], 60.0)
    anew.start()
    await anew.stop()
    assert shown(third) == {}


async def test_one_that_was_never_started_can_be_stopped(store: Store) -> None:
    monitor = Monitor(store, Telemetry(), [live()], 60.0)
    monitor.take([row("1", True, "refund", "1")])
    await monitor.stop()
    assert store.reads.get("live_trials") is None
