"""Writes of evaluation runs."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, Store, WriteSet, runs
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.runs import MOST_WAITING, FullError, RunBatch, RunResult, RunRow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


@contextlib.contextmanager
def written(store: Store) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect(store.path / FILE_NAME, "off")) as connection:
        yield connection


def result(about: int, score: float | None, metric: str = "trace.m") -> RunResult:
    outcome = "scored" if score is not None else "skipped"
    success = None if score is None else score >= 0.5
    return RunResult(about, metric, outcome, score, success, 0.25, "1 judge", b"%d %r" % (about, score))


def batch(run: int, *items: tuple[int, str], **totals: float) -> WriteSet:
    rows = [result(no, 0.75) for no, why in items if not why]
    return WriteSet(runs=[RunBatch(run, items, rows, **totals)])  # type: ignore[arg-type]


def of(store: Store, run: RunRow) -> RunRow:
    found = store.runs.find(run.id)
    assert found is not None
    return found


def rows(store: Store, table: str, run: int) -> list[int]:
    key = "about" if table == "run_results" else "no"
    return [
        no for (no,) in store.reads.connection().execute(f"SELECT {key} FROM {table} WHERE run = ? ORDER BY 1", (run,))
    ]


class TestQueueLimits:
    def test_a_run_over_the_limit_is_rejected_until_another_run_is_cancelled(self, store: Store) -> None:
        runs = [store.runs.create(b"%d" % number).result() for number in range(MOST_WAITING)]
        with pytest.raises(FullError, match="100 runs wait already"):
            store.runs.create(b"more").result()
        store.runs.cancel(runs[7].id).result()
        assert store.runs.create(b"more").result()

    def test_scheduled_runs_do_not_count_towards_the_limit(self, store: Store) -> None:
        schedule = store.schedules.add("0 3 * * *", b"{}", 0.0).result()
        for number in range(MOST_WAITING - 1):
            store.runs.create(b"%d" % number).result()
        assert store.schedules.fire(schedule.id, b"{}", 1.0, 2.0).result() is not None
        assert store.runs.create(b"more").result()

    def test_a_schedule_over_the_limit_is_rejected_until_another_is_removed(self, store: Store) -> None:
        kept = [store.schedules.add("0 3 * * *", b"{}", 0.0).result() for _ in range(MOST_WAITING)]
        with pytest.raises(FullError, match="100 schedules already"):
            store.schedules.add("0 3 * * *", b"{}", 0.0).result()
        store.schedules.remove(kept[0].id).result()
        store.schedules.add("0 3 * * *", b"{}", 0.0).result()


class TestNewRuns:
    def test_a_run_is_queued_up_to_the_newest_listed_trace(self, store: Store) -> None:
        ids = [bytes([number]) * 16 for number in (1, 2, 3)]
        traces = [DecidedTrace(id_, 1, True, "d", frozenset(), [], 0) for id_ in ids]
        listed = [ListedRow(id_, 1, "a", "s", "", "", False, b"{}") for id_ in ids[:2]]
        store.commit(WriteSet(traces=traces, listed=listed)).result()
        before = store.clock.calendar()
        run = store.runs.create(b"asked").result()
        assert (run.state, run.upto, run.schedule, run.body) == ("queued", 2, "", b"asked")
        assert before <= run.created_at <= store.clock.calendar()
        assert (run.started_at, run.ended_at, run.planned, run.total, run.done, run.failed) == (None, None, 0, 0, 0, 0)
        assert store.runs.find(run.id) == run
        assert len(run.id) == 16

    def test_a_run_of_an_empty_store_covers_no_trace(self, store: Store) -> None:
        run = store.runs.create(b"asked").result()
        assert run.upto == 0

    def test_a_listed_session_does_not_count_as_a_trace(self, store: Store) -> None:
        with written(store) as connection:
            connection.execute("INSERT INTO listed (no, session, at, badness, failures) VALUES (-3, 3, 0, 0, 0)")
            assert runs.queued(connection, b"{}", 1.0).upto == 0

    def test_a_scheduled_run_names_its_schedule(self, store: Store) -> None:
        with written(store) as connection:
            run = runs.queued(connection, b"{}", 7.0, schedule="nightly")
        assert (run.schedule, run.created_at) == ("nightly", 7.0)


class TestBatches:
    def test_items_calls_and_costs_are_counted(self, store: Store) -> None:
        run = store.runs.create(b"").result()
        store.runs.plan(run.no, [(no, 0) for no in (1, 2, 3, 4)], 9, False).result()
        store.commit(batch(run.no, (1, ""), (2, "no spans"), calls=2, tokens=30, cost_usd=0.5)).result()
        store.commit(batch(run.no, (3, ""), calls=1, tokens=10, cost_usd=0.25)).result()
        now = of(store, run)
        assert (now.total, now.done, now.failed, now.planned) == (4, 2, 1, 9)
        assert (now.calls, now.tokens, now.cost_usd) == (3, 40, 0.75)
        assert store.runs.pending(run.no, 9) == [(4, 0)]
        assert {state: rows_of(store, run.no, state) for state in ("done", "failed")} == {
            "done": [(1, ""), (3, "")],
            "failed": [(2, "no spans")],
        }

    def test_only_pending_items_are_counted(self, store: Store) -> None:
        run = store.runs.create(b"").result()
        store.runs.plan(run.no, [(1, 0), (2, 0)], 2, False).result()
        for each in (batch(run.no, (1, ""), (5, "")), batch(run.no, (1, "late")), batch(run.no, (2, "bad"), (2, ""))):
            store.commit(each).result()
        now = of(store, run)
        assert (now.done, now.failed) == (1, 1)

    def test_a_batch_does_not_change_another_run(self, store: Store) -> None:
        one, other = store.runs.create(b"").result(), store.runs.create(b"").result()
        for run in (one, other):
            store.runs.plan(run.no, [(1, 0)], 1, False).result()
        store.commit(batch(one.no, (1, ""), calls=1)).result()
        now = of(store, other)
        assert (now.done, now.calls, store.runs.pending(other.no, 5)) == (0, 0, [(1, 0)])
        assert rows(store, "run_results", other.no) == []

    def test_a_result_is_stored_with_all_its_fields(self, store: Store) -> None:
        run = store.runs.create(b"").result()
        store.commit(WriteSet(runs=[RunBatch(run.no, [], [result(4, 0.25), result(-2, None, "session.n")])])).result()
        columns = "run, about, metric, outcome, score, success, cost_usd, by, body"
        found = store.reads.connection().execute(f"SELECT {columns} FROM run_results ORDER BY seq").fetchall()
        assert found == [
            (run.no, 4, "trace.m", "scored", 0.25, 0, 0.25, "1 judge", b"4 0.25"),
            (run.no, -2, "session.n", "skipped", None, None, 0.25, "1 judge", b"-2 None"),
        ]

    def test_a_newer_result_of_a_unit_replaces_the_earlier_one(self, store: Store) -> None:
        run = store.runs.create(b"").result()
        for score in (0.25, 1.0):
            store.commit(WriteSet(runs=[RunBatch(run.no, [], [result(4, score)])])).result()
        assert store.runs.results(run.no)[0] == [b"4 1.0"]


def rows_of(store: Store, run: int, state: str) -> list[tuple[int, str]]:
    found = store.reads.connection().execute(
        "SELECT no, why FROM run_items WHERE run = ? AND state = ? ORDER BY no", (run, state)
    )
    return found.fetchall()


class TestForgetting:
    def filled(self, store: Store, items: int = 4) -> RunRow:
        run = store.runs.create(b"").result()
        numbers = range(1, items + 1)
        store.runs.plan(run.no, [(no, 0) for no in numbers], items, False).result()
        store.commit(batch(run.no, *((no, "") for no in numbers))).result()
        return run

    @pytest.mark.parametrize("ending", ["done", "cancelled"])
    def test_a_run_is_deleted_only_if_it_ended_before_the_given_time(self, store: Store, ending: str) -> None:
        run = self.filled(store)
        if ending == "done":
            store.runs.begin(run.no).result()
            store.runs.end(run.no).result()
        else:
            assert store.runs.cancel(run.id).result()
        ended_at = of(store, run).ended_at
        assert ended_at is not None
        with written(store) as connection:
            assert runs.forget(connection, ended_at, 100) == 0
            assert of(store, run).no == run.no
            assert runs.forget(connection, ended_at + 0.001, 100) == 8
        assert store.runs.find(run.id) is None
        assert rows(store, "run_results", run.no) == rows(store, "run_items", run.no) == []

    @pytest.mark.parametrize("begun", [False, True])
    def test_an_unfinished_run_is_not_deleted(self, store: Store, begun: bool) -> None:
        run = self.filled(store)
        if begun:
            store.runs.begin(run.no).result()
        with written(store) as connection:
            assert runs.forget(connection, 9e12, 100) == 0
        assert rows(store, "run_items", run.no) == rows(store, "run_results", run.no) == [1, 2, 3, 4]

    def test_rows_of_a_run_are_deleted_in_batches_and_the_run_last(self, store: Store) -> None:
        run, other = self.filled(store, 4), self.filled(store, 1)
        store.runs.begin(run.no).result()
        store.runs.end(run.no).result()
        with written(store) as connection:
            steps = []
            for _ in range(4):
                gone = runs.forget(connection, 9e12, 3)
                steps.append((gone, len(rows(store, "run_results", run.no)), len(rows(store, "run_items", run.no))))
                assert (store.runs.find(run.id) is None) == (len(steps) > 2)
        assert steps == [(3, 1, 4), (3, 0, 2), (2, 0, 0), (0, 0, 0)]
        assert rows(store, "run_items", other.no) == [1]

    def test_many_ended_runs_are_deleted_ten_at_a_time(self, store: Store) -> None:
        ended = [self.filled(store, 1) for _ in range(12)]
        for run in ended:
            store.runs.begin(run.no).result()
            store.runs.end(run.no).result()
        with written(store) as connection:
            assert runs.forget(connection, 9e12, 100) == 20, "ten runs at a time"
            assert runs.forget(connection, 9e12, 100) == 4
        assert store.runs.newest() == []
