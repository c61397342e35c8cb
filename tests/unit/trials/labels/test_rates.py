"""Pass rates and next labels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, Scores, corrected_rate
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.labels import rates as rates_module
from pandaeval_collector.labels.queue import draw, unclear_first
from pandaeval_collector.labels.rates import OTHER, PassRates, pass_rates
from pandaeval_collector.store import Store, WriteSet, people
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_lab.labels.calibration import weights
from pandaeval_otel.wire.labels import HumanLabel
from support.judged_store import METRIC, filled, flattered, judged_row, unit
from support.receivers import until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = filled(tmp_path)
    yield opened
    opened.close()


def test_the_stored_rate_equals_the_corrected_rate_formula(store: Store) -> None:
    (found,) = pass_rates(store.reads.connection())
    passed, scores = flattered(400)
    expected = corrected_rate(Labelled.of(passed[:120].astype(float), scores[:120]), Scores(float(scores.mean()), 400))
    assert (found.metric, found.agent, found.n) == (METRIC, "helper", 120)
    assert found.judge > 0.9
    assert found.rate is not None
    assert found.rate.method == "corrected"
    assert (found.rate.value, found.rate.low, found.rate.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert found.rate.low < passed.mean() < found.rate.high < found.judge


def test_the_rate_is_stable_when_the_judge_version_changes(tmp_path: Path) -> None:
    before, after = filled(tmp_path / "before"), filled(tmp_path / "after")
    scores = flattered(400)[1]
    newer = [judged_row(at, max(0.0, float(scores[at]) - 0.4)) for at in range(200, 400)]
    after.commit(WriteSet(judged=[replace(each, version="5+a1b2c3") for each in newer])).result()
    (old,), (new,) = (pass_rates(each.reads.connection()) for each in (before, after))
    assert old.rate is not None
    assert new.rate is not None
    assert new.judge < old.judge - 0.1, "the judge's own rate drops"
    assert abs(new.rate.value - old.rate.value) < 0.02
    before.close()
    after.close()


def test_the_rate_is_unknown_below_50_labels(tmp_path: Path) -> None:
    opened = filled(tmp_path / "few", labelled=49)
    assert [(each.n, each.rate) for each in pass_rates(opened.reads.connection())] == [(49, None)]
    opened.people.put([HumanLabel(unit(60), METRIC, None, True, probability=0.1)], 1.0).result()
    (found,) = pass_rates(opened.reads.connection())
    assert found.rate is not None
    opened.close()


class TestPickedByHand:
    def test_labels_of_hand_picked_runs_give_no_rate_but_an_explanation(self, tmp_path: Path) -> None:
        opened = filled(tmp_path / "worst", labelled=0)
        passed, scores = flattered(400)
        worst = [int(at) for at in np.argsort(scores)[:120]]
        opened.people.put([HumanLabel(unit(at), METRIC, None, bool(passed[at])) for at in worst], 1.0).result()
        (found,) = pass_rates(opened.reads.connection())
        assert (found.n, found.by_hand, found.rate) == (0, 120, None)
        assert found.why == "takes 50 drawn labels; 120 that nobody drew serve calibrate alone"
        opened.close()

    def test_labels_of_hand_picked_runs_do_not_change_the_rate_of_drawn_runs(self, store: Store) -> None:
        (before,) = pass_rates(store.reads.connection())
        store.people.put([HumanLabel(unit(at), METRIC, None, False) for at in range(300, 380)], 1.0).result()
        (after,) = pass_rates(store.reads.connection())
        assert (after.rate, after.n, after.by_hand) == (before.rate, 120, 80)

    def test_hand_picked_labels_count_if_every_run_is_labelled(self, tmp_path: Path) -> None:
        opened = filled(tmp_path / "whole", runs=60, labelled=0)
        opened.people.put([HumanLabel(unit(at), METRIC, None, at < 45) for at in range(60)], 1.0).result()
        (found,) = pass_rates(opened.reads.connection())
        assert (found.n, found.by_hand, found.why) == (60, 0, "")
        assert found.rate is not None
        assert found.rate.value == pytest.approx(0.75)
        opened.close()


def test_labels_of_runs_without_a_judge_score_do_not_change_the_rates(store: Store) -> None:
    before = pass_rates(store.reads.connection())
    strangers = [HumanLabel(unit(5000 + number), METRIC, None, False) for number in range(200)]
    others = [HumanLabel(unit(number), "trace.coherence", None, False) for number in range(200)]
    store.people.put([*strangers, *others], 1.0).result()
    assert pass_rates(store.reads.connection()) == before


def test_several_labels_of_a_run_are_averaged_and_scores_compared_with_the_threshold(tmp_path: Path) -> None:
    opened = filled(tmp_path / "two", runs=60, labelled=0)
    labels = [HumanLabel(unit(at), METRIC, None, True, "ada") for at in range(60)]
    labels += [HumanLabel(unit(at), METRIC, 0.49, None, "bob") for at in range(30)]
    labels += [HumanLabel(unit(at), METRIC, 0.5, None, "bob") for at in range(30, 60)]
    opened.people.put(labels, 1.0).result()
    (found,) = pass_rates(opened.reads.connection())
    assert found.n == 60
    assert found.rate is not None
    assert found.rate.value == pytest.approx(0.75, abs=0.02)
    opened.close()


def test_each_agent_has_a_rate_and_agents_over_the_limit_share_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates_module, "MOST_AGENTS", 2)
    opened = Store(tmp_path / "agents", "off")
    rows = [judged_row(at, 0.9, f"agent {at % 4 if at % 4 < 3 else 3}") for at in range(80)]
    opened.commit(WriteSet(judged=rows)).result()
    opened.people.put([HumanLabel(unit(at), METRIC, None, True) for at in range(80)], 1.0).result()
    found = {each.agent: each.n for each in pass_rates(opened.reads.connection())}
    assert found == {"agent 0": 20, "agent 1": 20, OTHER: 40}
    opened.close()


def test_runs_judged_with_a_lower_probability_weigh_more(tmp_path: Path) -> None:
    opened = Store(tmp_path / "sampled", "off")
    rows = [judged_row(at, 0.3 if at % 2 else 0.9, probability=1.0 if at % 2 else 0.2) for at in range(200)]
    opened.commit(WriteSet(judged=rows)).result()
    opened.people.put([HumanLabel(unit(at), METRIC, None, at % 2 == 0) for at in range(200)], 1.0).result()
    (found,) = pass_rates(opened.reads.connection())
    assert found.judge == pytest.approx(5 / 6)
    assert found.rate is not None
    assert found.rate.value == pytest.approx(5 / 6)
    opened.close()


def test_differently_drawn_labels_are_weighted_by_their_effective_number() -> None:
    found = weights([1.0] * 6, [0.5, 0.5, 0.1, 0.1, None, None])
    assert found[0] / found[2] == pytest.approx(0.2)
    assert found[4] == found[5] == pytest.approx(1.0)
    known = sum(found[:4]) ** 2 / sum(each**2 for each in found[:4])
    assert sum(found[:4]) == pytest.approx(known)


class TestQueue:
    def test_a_draw_takes_unlabelled_runs_and_stores_their_probabilities(self, store: Store, tmp_path: Path) -> None:
        connection = connect(tmp_path / FILE_NAME, "off")
        queue = draw(connection, METRIC, "", 20, 5.0)
        again = draw(connection, METRIC, "", 20, 6.0)
        assert queue.drawn == again.drawn
        assert (len(queue.drawn), queue.labelled, queue.waiting) == (20, 120, 280)
        assert not {each.run.unit for each in queue.drawn} & {unit(at) for at in range(120)}
        people.put(connection, [HumanLabel(each.run.unit, METRIC, None, True, "bob") for each in queue.drawn], 7.0)
        chances = {each.run.unit: each.probability for each in queue.drawn}
        stored = {each.unit: each.probability for each in people.labels(connection) if each.annotator == "bob"}
        assert stored == pytest.approx(chances)
        following = draw(connection, METRIC, "", 20, 8.0)
        assert not chances.keys() & {each.run.unit for each in following.drawn}
        larger = {each.unit: each.probability for each in people.labels(connection) if each.annotator == "bob"}
        assert all(larger[key] >= chance for key, chance in chances.items())
        connection.close()

    def test_a_draw_for_one_agent_takes_all_its_runs_with_certainty(self, store: Store, tmp_path: Path) -> None:
        store.commit(WriteSet(judged=[judged_row(900 + at, 0.5, "clerk") for at in range(3)])).result()
        connection = connect(tmp_path / FILE_NAME, "off")
        queue = draw(connection, METRIC, "clerk", 20, 5.0)
        assert sorted(each.run.unit for each in queue.drawn) == [unit(900), unit(901), unit(902)]
        assert {each.probability for each in queue.drawn} == {1.0}
        assert draw(connection, METRIC, "nobody", 20, 5.0).drawn == []
        connection.close()


class TestUnclear:
    """Unclear verdicts count in neither rate."""

    @pytest.fixture
    def unsure(self, store: Store) -> Store:
        """Make runs from 300 unclear, the last nearest the threshold."""
        rows = [replace(judged_row(at, 0.75 - (at - 300) / 500), passed=None) for at in range(300, 400)]
        store.commit(WriteSet(judged=rows)).result()
        return store

    def test_the_judges_rate_counts_only_decided_runs(self, unsure: Store) -> None:
        (found,) = pass_rates(unsure.reads.connection())
        scores = flattered(400)[1][:300]
        assert found.judge == pytest.approx(float((scores >= 0.5).mean()))
        assert found.undecided == 0.25

    def test_without_any_decided_run_the_judge_has_no_rate(self, tmp_path: Path) -> None:
        opened = filled(tmp_path / "open", runs=60, labelled=60)
        opened.commit(WriteSet(judged=[replace(judged_row(at, 0.6), passed=None) for at in range(60)])).result()
        (found,) = pass_rates(opened.reads.connection())
        assert (found.judge, found.undecided, found.n) == (None, 1.0, 60)
        opened.close()

    def test_unclear_runs_are_picked_first_and_their_labels_enter_no_rate(self, unsure: Store) -> None:
        before = pass_rates(unsure.reads.connection())
        queue = unclear_first(unsure.reads.connection(), METRIC, "", 105)
        assert [each.run.unit for each in queue.drawn[:2]] == [unit(399), unit(398)]
        assert [each.run.passed is None for each in queue.drawn] == [True] * 100 + [False] * 5
        assert {each.probability for each in queue.drawn} == {people.PICKED}
        labels = [HumanLabel(each.run.unit, METRIC, None, False, probability=each.probability) for each in queue.drawn]
        unsure.people.put(labels, 1.0).result()
        assert pass_rates(unsure.reads.connection()) == before
        again = unclear_first(unsure.reads.connection(), METRIC, "", 105)
        assert not {each.run.unit for each in again.drawn} & {each.run.unit for each in queue.drawn}

    def test_a_picked_run_can_be_drawn_later_and_counts_with_a_drawn_label(self, unsure: Store) -> None:
        picked = HumanLabel(unit(399), METRIC, None, True, probability=people.PICKED)
        unsure.people.put([picked], 1.0).result()
        connection = connect(unsure.path / FILE_NAME, "off")
        drawn = draw(connection, METRIC, "", 400, 1.0).drawn
        connection.close()
        assert unit(399) in {each.run.unit for each in drawn}
        assert [each.probability for each in people.labels(unsure.reads.connection()) if each.unit == unit(399)] == [0]
        before = pass_rates(unsure.reads.connection())[0].n
        unsure.people.put([replace(picked, probability=0.3)], 2.0).result()
        assert pass_rates(unsure.reads.connection())[0].n == before + 1


async def test_gauges_show_the_number_of_labels_and_the_rate(tmp_path: Path) -> None:
    opened = filled(tmp_path / "gauges", labelled=49)
    telemetry = Telemetry()
    shown = Every(0.02, PassRates(opened, telemetry).update, "rates")

    def gauges() -> dict[str, float]:
        found = [each for each in telemetry.measures() if each.instrument.name.startswith("pandaeval.pass_rate")]
        about = {"gen_ai.evaluation.name": "task_completion", "pandaeval.level": "trace", "gen_ai.agent.name": "helper"}
        assert all(dict(each.attributes) == about for each in found)
        return {each.instrument.name.removeprefix("pandaeval.pass_rate"): each.value for each in found}

    await until(lambda: gauges() == {".labels": 49.0})
    await asyncio.wrap_future(opened.people.put([HumanLabel(unit(70), METRIC, None, True, probability=0.1)], 1.0))
    await until(lambda: gauges().keys() == {"", ".low", ".high", ".labels"})
    found = gauges()
    assert 0.5 < found[".low"] < found[""] < found[".high"] < 0.85
    await shown.stop()
    opened.close()


def test_a_human_label_changes_no_results_and_no_judge_scores(store: Store) -> None:
    before = store.reads.newest_seq(), [replace(row) for row, _ in people.judged(store.reads.connection())]
    store.people.put([HumanLabel(unit(300), METRIC, 0.0, False)], 1.0).result()
    assert (store.reads.newest_seq(), [row for row, _ in people.judged(store.reads.connection())]) == before
    assert list(store.reads.tally.names()) == []
