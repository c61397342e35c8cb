"""Series increments and label caps."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pandaeval_collector.base.result import EvaluatorInfo, Result
from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.store import SeriesRow, Store, WriteSet
from pandaeval_collector.store.series import (
    CAPS,
    INSTRUMENTS,
    MAX_SERIES,
    OTHER,
    Increment,
    Point,
    SeriesLabels,
    increments,
)
from pandaeval_otel.base.names import MAX_NAME_CHARS
from support.results import JUDGE, SPAN_ID, TRACE_ID, result

BASE = {
    "gen_ai.evaluation.name": "coherence",
    "pandaeval.level": "trace",
    "gen_ai.agent.name": "helper",
    "pandaeval.service": "shop",
    "deployment.environment.name": "test",
}


def added(*results: Result, counted: tuple[str, ...] = ()) -> dict[str, list[Increment]]:
    found: dict[str, list[Increment]] = {}
    for each in increments(results, counted, SeriesLabels()):
        found.setdefault(each.instrument.name, []).append(each)
    return found


def stored(folder: Path, *batches: list[Result], most: int = MAX_SERIES) -> dict[str, list[Point]]:
    """Return the series after commits with restarts."""
    for batch in batches:
        store = Store(folder, "off")
        changes = WriteSet()
        labels = SeriesLabels(store.reads.tally.labels(), store.reads.tally.names(), most)
        Emitter(labels=labels).add(batch, (), changes)
        store.commit(changes).result()
        rows = [row for name in INSTRUMENTS for row in store.reads.tally.page("otlp", name)]
        store.close()
    found: dict[str, list[Point]] = {}
    for row in rows:
        found.setdefault(row.instrument.name, []).append(row)
    return found


class TestAttributes:
    def test_a_scored_result_is_measured_and_counted_with_its_attributes(self) -> None:
        found = added(result())
        assert set(found) == {"pandaeval.evaluation.score", "pandaeval.evaluations"}
        assert dict(found["pandaeval.evaluation.score"][0].attributes) == BASE
        counted = dict(found["pandaeval.evaluations"][0].attributes)
        assert counted == BASE | {"pandaeval.outcome": "scored", "pandaeval.passed": "true"}

    @pytest.mark.parametrize("label", ["unclear", "disputed"])
    def test_an_undecided_verdict_is_measured_and_counted_by_its_label(self, label: str) -> None:
        found = added(result(finding=Score(0.6, label=label)))
        assert found["pandaeval.evaluation.score"][0].total == 0.6
        counted = dict(found["pandaeval.evaluations"][0].attributes)
        assert counted == BASE | {"pandaeval.outcome": "scored", "pandaeval.verdict": label}

    def test_an_unscored_result_is_counted_and_not_measured(self) -> None:
        found = added(result(finding=Unscored(Why.NO_CONTENT)))
        assert set(found) == {"pandaeval.evaluations"}
        counted = dict(found["pandaeval.evaluations"][0].attributes)
        assert counted == BASE | {"pandaeval.outcome": "unscored", "pandaeval.why": "no_content"}

    def test_an_assumed_result_is_counted_and_not_measured(self) -> None:
        found = added(result(finding=Assumed("nothing to do")))
        assert set(found) == {"pandaeval.evaluations"}
        assert ("pandaeval.outcome", "assumed") in found["pandaeval.evaluations"][0].attributes

    def test_a_revision_is_counted_separately_and_not_measured_again(self) -> None:
        found = added(result(revision=2), counted=("coherence-1",))
        assert set(found) == {"pandaeval.evaluations", "pandaeval.revisions"}
        assert set(dict(found["pandaeval.revisions"][0].attributes)) == {
            "gen_ai.evaluation.name",
            "pandaeval.level",
            "pandaeval.service",
        }

    def test_attributes_contain_no_ids_and_no_texts(self) -> None:
        texts = {value for group in added(result()).values() for each in group for _, value in each.attributes}
        assert not texts & {TRACE_ID, SPAN_ID, "session-1", "resp-1", "coherence-1", "well said"}


class TestJudge:
    def test_cached_tokens_count_in_tokens_and_in_their_own_counter(self) -> None:
        about = {"pack": "p", "tokens": {"input": 90, "output": 10, "cached": 64}}
        judged = result("confidence", Score(0.5, metadata={"judge": about}), evaluator=JUDGE, tokens=100)
        found = added(judged, result("plan_quality", evaluator=JUDGE, tokens=50))
        assert [each.total for each in found["pandaeval.judge.tokens"]] == [100.0, 50.0]
        [cached] = found["pandaeval.judge.cached_tokens"]
        assert cached.total == 64.0
        assert cached.attributes == found["pandaeval.judge.tokens"][0].attributes


class TestHistogram:
    @pytest.mark.parametrize(
        ("value", "bucket"), [(0.0, 0), (0.05, 1), (0.1, 1), (0.10001, 2), (0.9, 9), (0.95, 10), (0.99, 11), (1.0, 12)]
    )
    def test_a_bound_belongs_to_the_bucket_below_it(self, value: float, bucket: int) -> None:
        [each] = added(result(finding=Score(value)))["pandaeval.evaluation.score"]
        assert each.buckets == {bucket: 1}
        assert each.exemplars[bucket].trace_id == TRACE_ID
        assert each.exemplars[bucket].span_id == SPAN_ID

    def test_an_unsampled_trace_gives_no_exemplar(self) -> None:
        assert not any(each.exemplars for group in added(result(sampled=False)).values() for each in group)

    def test_a_histogram_adds_up_over_commits_and_restarts(self, tmp_path: Path) -> None:
        batches = [[result(id=f"r{n}", finding=Score(n / 10))] for n in range(4)]
        [row] = stored(tmp_path, *batches)["pandaeval.evaluation.score"]
        assert (row.count, row.total) == (4, pytest.approx(0.6))
        assert row.buckets == (1, 1, 1, 1, *[0] * 9)


class TestNames:
    def test_a_long_name_is_shortened_in_every_label(self) -> None:
        long = "n" * (1 << 20)
        judge = EvaluatorInfo("llm", "1", long)
        changes = WriteSet()
        labels = SeriesLabels()
        made = result(agent=long, service=long, environment=long, revision=2, evaluator=judge, tokens=3)
        Emitter({"logs", "traces"}, labels).add([made], (), changes)
        assert len(changes.series) == 6
        assert max(len(row.attributes) for row in changes.series) < 1000
        assert {len(value) for _, value in changes.labels} == {MAX_NAME_CHARS}

    def test_long_names_that_differ_only_at_the_end_stay_distinct(self) -> None:
        labels = SeriesLabels()
        long = "n" * 500
        assert len({labels.admit("agent", f"{long}{end}") for end in "abca"}) == 3


class TestMostSeries:
    def fill(self, most: int, number: int) -> tuple[SeriesLabels, Emitter, list[SeriesRow]]:
        labels = SeriesLabels(most=most)
        self.heard = 0

        def hear(results: int) -> None:
            self.heard += results

        emitter = Emitter(labels=labels, folded=hear)
        changes = WriteSet()
        for n in range(number):
            emitter.add([result(id=f"r{n}", agent=f"a{n % 50}", service=f"s{n // 50}")], (), changes)
        return labels, emitter, changes.series

    def test_above_the_limit_names_become_other_and_sums_stay_complete(self) -> None:
        labels, _, rows = self.fill(100, 500)
        keys = {(row.name, row.attributes) for row in rows}
        assert len(keys) == labels.series == 102
        evaluations = [row for row in rows if row.name == "pandaeval.evaluations"]
        assert sum(row.count for row in evaluations) == 500
        others = [row for row in evaluations if OTHER in row.attributes]
        assert sum(row.count for row in others) == 450 == self.heard
        assert dict(orjson.loads(others[0].attributes)) == {
            "gen_ai.evaluation.name": "coherence",
            "pandaeval.level": "trace",
            "gen_ai.agent.name": OTHER,
            "pandaeval.service": OTHER,
            "deployment.environment.name": OTHER,
            "pandaeval.outcome": "scored",
            "pandaeval.passed": "true",
        }

    def test_reaching_the_limit_is_logged_once(self, caplog: pytest.LogCaptureFixture) -> None:
        self.fill(100, 500)
        assert [record.message.count("score series is reached") for record in caplog.records] == [1]

    def test_existing_series_keep_counting_at_the_limit_and_after_restarts(self, tmp_path: Path) -> None:
        batches = [[result(id=f"r{n}", agent=f"a{n}")] for n in range(5)]
        rows = stored(tmp_path, *batches, *batches, most=4)["pandaeval.evaluations"]
        counts = {dict(row.attributes)["gen_ai.agent.name"]: row.count for row in rows}
        assert counts == {"a0": 2, "a1": 2, OTHER: 6}

    def test_lowering_the_limit_keeps_existing_series(self, tmp_path: Path) -> None:
        batches = [[result(id=f"r{n}", agent=f"a{n}")] for n in range(5)]
        stored(tmp_path, *batches[:3])
        rows = stored(tmp_path, *batches, most=2)["pandaeval.evaluations"]
        counts = {dict(row.attributes)["gen_ai.agent.name"]: row.count for row in rows}
        assert counts == {"a0": 2, "a1": 2, "a2": 2, OTHER: 2}


def test_histograms_have_exactly_the_expected_labels_and_no_le() -> None:
    about = {"pack": "p", "calls": 1, "tokens": {"input": 2, "output": 1, "cached": 0}}
    judged = result(finding=Score(0.5, metadata={"judge": about}), evaluator=JUDGE, tokens=3, cost_usd=0.1)
    found = increments([judged], (), SeriesLabels())
    histograms = {each.instrument.name: each for each in found if each.instrument.kind == "histogram"}
    assert {*histograms} == {name for name, each in INSTRUMENTS.items() if each.kind == "histogram"}
    assert {key for each in histograms.values() for key, _ in each.attributes} == {
        *BASE,
        "gen_ai.operation.name",
        "gen_ai.request.model",
        "gen_ai.token.type",
        "pandaeval.outcome",
    }


class TestCaps:
    def test_names_above_the_cap_become_other(self) -> None:
        labels = SeriesLabels()
        names = [labels.admit("environment", f"env-{n}") for n in range(CAPS["environment"] + 5)]
        assert names[-5:] == [OTHER] * 5
        assert labels.admit("environment", "env-0") == "env-0"
        assert labels.admit("environment", "") == ""

    def test_admitted_names_survive_restarts(self, tmp_path: Path) -> None:
        many = [[result(id=f"r{n}", environment=f"env-{n}") for n in range(CAPS["environment"])]]
        late = [[result(id="late", environment="one-too-many")], [result(id="first", environment="env-0")]]
        rows = stored(tmp_path, *many, *late)["pandaeval.evaluations"]
        counts = {dict(row.attributes)["deployment.environment.name"]: row.count for row in rows}
        assert counts.pop("env-0") == 2
        assert counts.pop(OTHER) == 1
        assert counts == {f"env-{n}": 1 for n in range(1, CAPS["environment"])}
