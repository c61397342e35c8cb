"""Runs in the store: pending, filed, forgotten, compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.runs.compare import compared
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.runs import RunBatch, RunResult, RunRow

UNITS = 400


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def created(store: Store, name: str = "") -> RunRow:
    return store.runs.create(RunSpec(("trace.confidence",), name=name).to_json()).result()


def result(about: int, score: float, by: str = "1 judge") -> RunResult:
    body = orjson.dumps({"trace_id": f"{about:032x}", "session_id": None})
    return RunResult(about, "trace.confidence", "scored", score, score >= 0.5, 0.0, by, body)


def filed(store: Store, run: RunRow, scores: dict[int, float], by: str = "1 judge") -> None:
    store.runs.plan(run.no, [(no, 0) for no in scores], 0, False).result()
    rows = [result(no, score, by) for no, score in scores.items()]
    batch = RunBatch(run.no, [(no, "") for no in scores], rows, calls=len(rows), tokens=10, cost_usd=0.5)
    store.commit(WriteSet(runs=[batch])).result()


def found(store: Store, run: RunRow) -> RunRow:
    now = store.runs.find(run.id)
    assert now is not None
    return now


def test_a_run_spec_is_unchanged_after_a_json_round_trip() -> None:
    spec = RunSpec(("a", "b"), Wanted(agent="x", failed=True), "m", 0.5, {"coherence": 0.0}, True, "n", (1.0, 2.0))
    assert RunSpec.from_json(spec.to_json()) == spec


def test_batches_keep_sessions_whole_and_a_repeated_batch_counts_once(store: Store) -> None:
    run = created(store)
    items = [(1, 0), (2, 7), (3, 7), (4, 7), (5, 8), (6, 0)]
    store.runs.plan(run.no, items, 0, False).result()
    assert store.runs.pending(run.no, 3) == [(1, 0), (6, 0)], "a larger batch would split a session"
    assert store.runs.pending(run.no, 100) == sorted(items, key=lambda item: (item[1], item[0]))
    batch = RunBatch(run.no, [(1, ""), (6, "judge_failed")], [result(1, 0.9)], calls=2, tokens=5, cost_usd=0.1)
    for _ in range(2):
        store.commit(WriteSet(runs=[batch])).result()
    now = found(store, run)
    assert (now.total, now.done, now.failed) == (6, 1, 1), "a batch that is repeated counts once"
    assert len(store.runs.results(run.no)[0]) == 1
    assert store.runs.pending(run.no, 2) == [(2, 7), (3, 7), (4, 7)], "one session is a batch, however large"


def test_a_started_run_comes_before_waiting_runs(store: Store) -> None:
    first, second = created(store), created(store)
    assert store.runs.next() == first
    store.runs.begin(second.no).result()
    goes_on = store.runs.next()
    assert goes_on is not None
    assert goes_on.id == second.id


def test_expired_runs_are_deleted_with_their_results(store: Store) -> None:
    run = created(store)
    store.runs.begin(run.no).result()
    filed(store, run, dict.fromkeys(range(1, 31), 0.5))
    store.runs.begin(run.no).result()
    store.runs.end(run.no).result()
    assert store.forget(0, 1000, store.clock.calendar()).result() == 0
    while store.forget(0, 0, store.clock.calendar() + 10, limit=7).result():
        pass
    assert store.runs.find(run.id) is None
    assert store.runs.results(run.no) == ([], None)


def test_results_are_read_in_pages(store: Store) -> None:
    run = created(store)
    filed(store, run, dict.fromkeys(range(1, 11), 0.5))
    shown: list[bytes] = []
    after: int | None = 0
    while after is not None:
        page, after = store.runs.results(run.no, after, 4)
        shown += page
    assert [orjson.loads(body)["trace_id"] for body in shown] == [f"{no:032x}" for no in range(1, 11)]


class TestComparing:
    def scores(self, seed: int) -> dict[int, float]:
        chance = random.Random(seed)
        return {no: chance.uniform(0.2, 0.8) for no in range(1, UNITS + 1)}

    def test_two_runs_with_equal_scores_do_not_differ(self, store: Store) -> None:
        first, second = created(store), created(store)
        for run in (first, second):
            filed(store, run, self.scores(1))
        (same,) = compared(store.runs, first, second)
        assert (same.pairs, same.both_scored, same.differing, same.agreement) == (UNITS, UNITS, 0, 1.0)
        assert same.difference is not None
        assert (same.difference.mean, same.difference.low, same.difference.high) == (0.0, 0.0, 0.0)
        assert same.changes == []

    def test_a_planted_change_of_ten_points_is_found(self, store: Store) -> None:
        first, second = created(store), created(store)
        scores, noise = self.scores(2), random.Random(3)
        filed(store, first, scores)
        filed(store, second, {no: score - 0.1 + noise.gauss(0, 0.15) for no, score in scores.items()}, by="1 other")
        (found,) = compared(store.runs, first, second)
        assert found.difference is not None
        assert found.difference.low is not None
        assert found.difference.high is not None
        assert found.difference.low < -0.1 < found.difference.high < 0
        assert found.versions == (["1 judge"], ["1 other"])
        largest = [abs(change.after - change.before) for change in found.changes]
        assert largest == sorted(largest, reverse=True)
        assert largest[0] > 0.3
        (again,) = compared(store.runs, first, second)
        assert again == found, "the interval uses a fixed seed"

    def test_results_of_only_one_run_are_not_compared(self, store: Store) -> None:
        first, second = created(store), created(store)
        filed(store, first, {1: 0.2, 2: 0.9})
        filed(store, second, {2: 0.4, 3: 0.9})
        (found,) = compared(store.runs, first, second)
        assert (found.pairs, found.differing, found.agreement) == (1, 1, 0.0)
        assert [(change.trace_id, change.before, change.after) for change in found.changes] == [(f"{2:032x}", 0.9, 0.4)]
