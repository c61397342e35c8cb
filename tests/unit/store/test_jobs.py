"""Judge jobs: states, restarts, budgets."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    JobEnd,
    JobRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
    jobs,
)
from pandaeval_collector.store.schema import TABLES
from pandaeval_collector.store.table import StoreTable
from support.examples import examples

T = TypeVar("T")
NOW = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def _trace(number: int = 1, revision: int = 1) -> DecidedTrace:
    return DecidedTrace(
        bytes([number]) * 16, revision, False, f"digest {revision}", frozenset({b"s" * 8}), [number], 10
    )


def _job(id_: str = "a", number: int = 1, delay: float = 0.0) -> JobRow:
    return JobRow(id_, bytes([number]) * 16, "trace.confidence", delay, b"{}")


def _add(store: Store, *rows: JobRow, revision: int = 1) -> None:
    store.commit(WriteSet(traces=[_trace(revision=revision)], jobs=list(rows))).result()


def _leased(store: Store, now: float | None = None, count: int = 10) -> list[str]:
    return [job.id for job in store.jobs.lease(now or time.time() + 1, count).result()]


def test_a_job_is_due_after_its_delay_and_leased_once(store: Store) -> None:
    _add(store, _job("now"), _job("later", delay=1000.0))
    assert _leased(store) == ["now"]
    assert _leased(store) == []
    assert store.jobs.counts() == {"due": 1, "leased": 1}
    assert store.jobs.waiting() == 2
    assert _leased(store, time.time() + 1e6) == ["later"], "a leased job is not leased again, however long it takes"


def test_the_retry_command_retries_only_dead_jobs(store: Store, tmp_path: Path) -> None:
    ends = [JobEnd(state, state) for state in ("dead", "done", "cancelled")]
    _add(store, _job("leased"), *(_job(end.id) for end in ends))
    _leased(store)
    store.commit(WriteSet(ended=ends)).result()
    _add(store, _job("due"))
    done = CliRunner().invoke(app, ["jobs", "retry"], env={"PANDAEVAL_DATA": str(tmp_path)})
    assert (done.exit_code, done.stdout) == (0, "1 jobs will run again\n")
    states = {job.id: job.state for job in jobs.listed(store.reads.connection())}
    assert states == {"dead": "due", "due": "due", "leased": "leased", "done": "done", "cancelled": "cancelled"}


def test_the_newest_job_is_leased_first(store: Store) -> None:
    for number in range(1, 4):
        _add(store, _job(f"job {number}", number))
        time.sleep(0.002)
    assert _leased(store, count=2) == ["job 3", "job 2"]


def test_a_result_has_at_most_one_job_and_none_if_it_exists(store: Store) -> None:
    _add(store, _job("a"))
    _add(store, _job("a"))
    assert store.jobs.counts() == {"due": 1}
    unit = _trace().trace_id.hex()
    store.commit(WriteSet(results=[ResultRow("b", unit, "trace.confidence", 1, b"{}")])).result()
    _add(store, _job("a"), _job("b"), revision=2)
    assert store.jobs.counts() == {"due": 1}, "an existing result needs no job"


def test_a_newer_revision_cancels_jobs_that_are_not_leased(store: Store) -> None:
    _add(store, _job("leased"))
    _leased(store)
    _add(store, _job("due"), _job("elsewhere", 2))
    _add(store, _job("newer"), revision=2)
    assert store.jobs.counts() == {"leased": 1, "cancelled": 1, "due": 2}


def test_only_a_leased_job_can_end(store: Store) -> None:
    _add(store, _job("a"), _job("b"))
    store.commit(WriteSet(ended=[JobEnd("a", "done")])).result()
    assert store.jobs.counts() == {"due": 2}
    _leased(store)
    store.commit(WriteSet(ended=[JobEnd("a", "done"), JobEnd("b", "dead", "timeout", "x" * 9999)])).result()
    assert store.jobs.counts() == {"done": 1, "dead": 1}


def test_each_lease_counts_an_attempt_unless_it_is_put_back_free(store: Store) -> None:
    _add(store, _job())
    for attempts, free in ((1, False), (2, True), (2, False), (3, False)):
        [job] = store.jobs.lease(time.time() + 1, 1).result()
        assert job.attempts == attempts
        store.jobs.put_back(job.id, 0.0, "busy", free=free, crashed=attempts == 3).result()
    [job] = store.jobs.lease(time.time() + 1, 1).result()
    assert (job.attempts, job.crashes, job.error) == (4, 1, "busy")


def test_after_a_restart_leased_jobs_are_due_and_reservations_are_spent(tmp_path: Path) -> None:
    first = Store(tmp_path, "off")
    _add(first, _job())
    _leased(first)
    assert first.spending.reserve(0.3, 1.0, NOW).result()
    first.close()
    second = Store(tmp_path, "off")
    assert second.jobs.release_all().result() == 1
    second.spending.settle_all().result()
    assert _leased(second) == ["a"]
    assert second.spending.spent(NOW) == pytest.approx(0.3)
    assert not second.spending.reserve(0.8, 1.0, NOW).result()
    second.close()


def test_an_attempt_interrupted_by_a_crash_does_not_count(store: Store) -> None:
    _add(store, _job())
    for _ in range(9):
        [job] = store.jobs.lease(time.time() + 1, 1).result()
        assert job.attempts == 1
        assert store.jobs.release_all().result() == 1


def test_a_day_costs_no_more_than_its_budget(store: Store) -> None:
    taken = [usd for usd in (0.4, 0.4, 0.4, 0.1) if store.spending.reserve(usd, 1.0, NOW).result()]
    assert taken == [0.4, 0.4, 0.1]
    store.spending.settle(0.4, 0.05, NOW).result()
    assert store.spending.spent(NOW) == pytest.approx(0.55)
    assert store.spending.reserve(0.45, 1.0, NOW).result()
    assert not store.spending.reserve(0.01, 1.0, NOW).result()
    assert store.spending.reserve(1.0, 1.0, NOW + 86_400).result(), "the next day has its own budget"


def test_verdicts_are_cached_until_the_retention_is_over(store: Store) -> None:
    store.verdicts.keep("k", b"v").result()
    assert store.verdicts.recall("k") == b"v"
    assert store.verdicts.recall("l") is None
    store.forget(0.0, 10.0, time.time() + 100).result()
    assert store.verdicts.recall("k") is None


def test_the_spans_of_a_trace_stay_while_a_job_needs_them(store: Store) -> None:
    chunk = Chunk(store.next_chunk_id(), bytes([1]) * 16, False, 1, 5, b"spans")
    store.append([chunk]).result()
    _add(store, _job())
    assert store.forget(0.0, 1e6, time.time() + 100).result() == 0
    _leased(store)
    assert store.forget(0.0, 1e6, time.time() + 100).result() == 0
    assert store.reads.chunks([chunk.id])
    store.commit(WriteSet(ended=[JobEnd("a", "done")])).result()
    assert store.forget(0.0, 1e6, time.time() + 100).result() == 1


def test_a_dead_job_can_be_retried(store: Store) -> None:
    _add(store, _job("abc"), _job("abd"))
    _leased(store)
    store.commit(WriteSet(ended=[JobEnd("abc", "dead", "timeout"), JobEnd("abd", "done")])).result()
    with contextlib.closing(sqlite3.connect(store.path / "pandaeval.db", isolation_level=None)) as other:
        assert [job.id for job in jobs.listed(other, start="ab")] == ["abc", "abd"]
        assert [job.why for job in jobs.listed(other, "dead", 10)] == ["timeout"]
        assert jobs.retry(other, ["abc", "abd"], time.time()) == 1
    [job] = store.jobs.lease(time.time() + 1, 5).result()
    assert (job.id, job.attempts, job.crashes) == ("abc", 1, 0)


def test_a_job_that_is_added_twice_exists_once(store: Store) -> None:
    _add(store, _job("a"), _job("b"))
    _add(store, _job("b"), _job("c"))
    assert sorted(_leased(store)) == ["a", "b", "c"]


class _Direct:
    """Runs the work of a table at once, on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def write(
        self, work: Callable[..., T], table: StoreTable, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(work(table, self._connection, *arguments, **options))
        return done


class JobsMachine(RuleBasedStateMachine):
    """Jobs under any order of events."""

    def teardown(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()

    @initialize()
    def open(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(TABLES)
        self.table = jobs.Jobs(lambda: self.connection, _Direct(self.connection))
        self.now, self.added, self.ended = 1000.0, 0, dict[str, str]()
        self.leased: set[str] = set()

    @rule(count=st.integers(1, 3), trace=st.integers(1, 2), again=st.booleans())
    def decide(self, count: int, trace: int, again: bool) -> None:
        rows = [_job(f"{self.added + n:04}", trace) for n in range(count)]
        self.added += count
        trace_id = bytes([trace]) * 16
        jobs.add(self.connection, rows, {trace_id: trace}, [trace_id] if again else [], self.now, (), self.now)

    @rule(count=st.integers(1, 4))
    def lease(self, count: int) -> None:
        due = {id_ for (id_,) in self.connection.execute("SELECT id FROM jobs WHERE state = 'due'")}
        ids = [job.id for job in self.table.lease(self.now, count).result()]
        assert len(ids) == len(set(ids)) >= min(count, len(due))
        assert due.issuperset(ids)
        self.leased.update(ids)

    @rule(state=st.sampled_from(["done", "dead", "cancelled"]))
    def end(self, state: str) -> None:
        if self.leased:
            id_ = self.leased.pop()
            jobs.end(self.connection, [JobEnd(id_, state)], self.now)
            self.ended[id_] = state

    @rule(number=st.integers(0, 50))
    def end_what_is_not_leased(self, number: int) -> None:
        if f"{number:04}" not in self.leased:
            jobs.end(self.connection, [JobEnd(f"{number:04}", "done")], self.now)

    @rule()
    def retry(self) -> None:
        dead = [id_ for id_, state in self.ended.items() if state == "dead"]
        assert jobs.retry(self.connection, list(self.ended), self.now) == len(dead)
        for id_ in dead:
            del self.ended[id_]

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "connection"):
            return
        states = dict(self.connection.execute("SELECT id, state FROM jobs"))
        assert len(states) == self.added
        assert {id_ for id_, state in states.items() if state == "leased"} == self.leased
        assert all(states[id_] == state for id_, state in self.ended.items())


TestJobsMachine = JobsMachine.TestCase
TestJobsMachine.settings = settings(max_examples=examples(40), stateful_step_count=20, deadline=None)


class TestLeases:
    @pytest.mark.parametrize(("count", "leased"), [(0, []), (1, ["c"]), (2, ["c", "b", "a"]), (9, ["c", "b", "a"])])
    def test_a_lease_takes_the_newest_due_jobs_and_others_of_their_trace(
        self, store: Store, count: int, leased: list[str]
    ) -> None:
        for id_ in "abc":
            _add(store, _job(id_))
        _add(store, _job("later", delay=60.0))
        held = store.jobs.lease(store.clock.running() + 1, count).result()
        assert [(job.id, job.state, job.attempts, job.crashes) for job in held] == [
            (id_, "leased", 1, 0) for id_ in leased
        ]
        assert {(job.metric, job.trace_id, job.body) for job in held} <= {("trace.confidence", b"\1" * 16, b"{}")}

    def test_a_job_that_is_put_back_waits_until_its_due_time(self, store: Store) -> None:
        _add(store, _job())
        now = store.clock.running() + 1
        store.jobs.lease(now, 1).result()
        store.jobs.put_back("a", now + 50.0, "e" * 600).result()
        assert store.jobs.next_due() == now + 50.0
        assert store.jobs.lease(now + 49.0, 1).result() == []
        [job] = store.jobs.lease(now + 50.0, 1).result()
        assert (job.error, job.attempts, job.crashes, job.due_at) == ("e" * 500, 2, 0, now + 50.0)
        store.jobs.put_back("a", now).result()
        [job] = store.jobs.lease(now, 1).result()
        assert job.error == ""

    def test_the_last_error_is_of_a_job_that_waits_for_a_retry(self, store: Store) -> None:
        _add(store, _job())
        now = store.clock.running() + 1
        assert store.jobs.last_error() is None
        store.jobs.lease(now, 1).result()
        store.jobs.put_back("a", 0.0, "connection refused").result()
        assert store.jobs.last_error() == "connection refused"
        store.jobs.lease(now, 1).result()
        store.jobs.put_back("a", 0.0).result()
        assert store.jobs.last_error() is None

    def test_the_last_error_is_the_newest(self, store: Store) -> None:
        for id_ in "ab":
            _add(store, _job(id_))
        store.jobs.lease(store.clock.running() + 1, 2).result()
        store.jobs.put_back("a", 0.0, "the key is not set").result()
        store.jobs.put_back("b", 0.0, "connection refused").result()
        assert store.jobs.last_error() == "connection refused"

    def test_only_a_leased_job_can_be_put_back(self, store: Store) -> None:
        _add(store, _job())
        due = store.jobs.next_due()
        store.jobs.put_back("a", 0.0, "busy", crashed=True).result()
        assert store.jobs.next_due() == due
        [job] = store.jobs.lease(store.clock.running() + 1, 1).result()
        assert (job.error, job.crashes) == ("", 0)

    def test_nothing_is_due_in_an_empty_store(self, store: Store) -> None:
        assert store.jobs.next_due() is None
        assert (store.jobs.waiting(), store.jobs.counts()) == (0, {})

    @pytest.mark.parametrize(("delay", "stays"), [(86_000.0, True), (90_000.0, False)])
    def test_a_start_limits_the_delay_of_each_job_to_a_day(self, store: Store, delay: float, stays: bool) -> None:
        _add(store, _job("held", number=2), _job("later", delay=delay))
        _leased(store)
        before, now = store.jobs.next_due(), store.clock.running()
        assert store.jobs.release_all().result() == 1
        due = {job.id: job.due_at for job in jobs.listed(store.reads.connection(), "due", 9)}
        assert (due["later"] == before) is stays
        assert due["later"] <= now + 86_400.0 + 60.0
        assert due["held"] <= now

    def test_pending_in_returns_sessions_with_open_judge_jobs(self, store: Store) -> None:
        rows = [SessionTraceRow(bytes([number]) * 16, f"s{number}", 1, 2, b"{}") for number in (1, 2, 3)]
        traces = [_trace(number) for number in (1, 2, 3)]
        store.commit(
            WriteSet(traces=traces, session_traces=rows, touched={"s1", "s2", "s3"}, jobs=[_job("a", 1), _job("b", 2)])
        ).result()
        theirs = SessionTraceRow(b"\7" * 16, "s7", 1, 2, b'{"outcome":"pending"}')
        store.commit(WriteSet(strangers={b"\7" * 16: "d"}, session_traces=[theirs], touched={"s7"})).result()
        names = [f"s{number}" for number in range(1200)]
        assert store.jobs.pending_in(names) == {"s1", "s2", "s7"}
        assert store.jobs.pending_in(["s2", "s3"]) == {"s2"}
        assert store.jobs.pending_in([]) == set()
        assert set(_leased(store)) == {"a", "b"}
        assert store.jobs.pending_in(iter(names)) == {"s1", "s2", "s7"}
        store.commit(WriteSet(ended=[JobEnd("a", "done"), JobEnd("b", "dead")])).result()
        assert store.jobs.pending_in(names) == {"s7"}

    def test_a_superseded_job_ends_at_calendar_time(self, store: Store) -> None:
        _add(store, _job("a"), _job("b"))
        _add(store, _job("other", 2))
        trace_id = _trace().trace_id
        with contextlib.closing(sqlite3.connect(store.path / "pandaeval.db", isolation_level=None)) as connection:
            jobs.add(connection, [_job("b"), _job("c", delay=5.0)], {trace_id: 1}, [trace_id], 100.0, (), 7.0)
            found = connection.execute("SELECT id, state, why, ended_at FROM jobs ORDER BY id").fetchall()
            due = connection.execute("SELECT due_at, created_at FROM jobs WHERE id = 'c'").fetchone()
        assert found == [
            ("a", "cancelled", "superseded", 7.0),
            ("b", "due", "", None),
            ("c", "due", "", None),
            ("other", "due", "", None),
        ]
        assert due == (105.0, 100.0)


class TestListingAndRetry:
    def test_jobs_are_listed_newest_first_by_state_or_all(self, store: Store) -> None:
        for id_ in "abc":
            _add(store, _job(id_))
        _leased(store, count=1)
        reader = store.reads.connection()
        assert [job.id for job in jobs.listed(reader, None, 9)] == ["c", "b", "a"]
        assert [job.id for job in jobs.listed(reader, None, 2)] == ["c", "b"]
        assert [job.id for job in jobs.listed(reader, "due", 9)] == ["b", "a"]
        assert [job.id for job in jobs.listed(reader, "leased", 9)] == ["c"]

    def test_a_job_error_is_cut_to_500_characters(self, store: Store) -> None:
        _add(store, _job())
        _leased(store)
        store.commit(WriteSet(ended=[JobEnd("a", "dead", "timeout", "e" * 600)])).result()
        [job] = jobs.listed(store.reads.connection(), "dead", 9)
        assert (job.why, job.error) == ("timeout", "e" * 500)

    def test_a_retried_job_is_due_again_as_if_new(self, store: Store) -> None:
        _add(store, _job())
        [held] = store.jobs.lease(store.clock.running() + 1, 1).result()
        store.jobs.put_back(held.id, 0.0, crashed=True).result()
        _leased(store)
        store.commit(WriteSet(ended=[JobEnd("a", "dead", "timeout", "e")])).result()
        with contextlib.closing(sqlite3.connect(store.path / "pandaeval.db", isolation_level=None)) as other:
            assert jobs.retry(other, ["a", "unknown"], 123.0) == 1
        [job] = jobs.listed(store.reads.connection(), "due", 9)
        assert (job.due_at, job.created_at, job.attempts, job.crashes, job.why) == (123.0, 123.0, 0, 0, "")
        store.forget(0.0, 1.0, store.clock.calendar() + 9e6).result()
        assert store.jobs.counts() == {"due": 1}, "a retried job has no end"
