"""Deletion after late window and retention."""

from __future__ import annotations

import random

import pytest

from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    JobEnd,
    JobRow,
    ListedRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
)
from support.database import open_database

WINDOW, RETENTION = 600.0, 7 * 86_400.0


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def decide(store: Store, number: int, *, digest: str = "d", listed: bool = False, session: str | None = None) -> None:
    """Decide a trace of two chunks in ``session``."""
    chunks = [Chunk(store.next_chunk_id(), trace_id(number), False, 1, 1, b"spans") for _ in range(2)]
    store.append(chunks).result()
    ids = [chunk.id for chunk in chunks]
    changes = WriteSet(traces=[DecidedTrace(trace_id(number), 1, False, digest, frozenset({b"1" * 8}), ids, 10)])
    if listed:
        changes.listed.append(ListedRow(trace_id(number), 1, "a", "s", "", "", False, b"{}"))
    if session is not None:
        changes.session_traces.append(SessionTraceRow(trace_id(number), session, number, number + 1, b"{}"))
        changes.touched = {session} - {""}
    store.commit(changes).result()


def forget(store: Store, later: float, **options: object) -> int:
    now = store.clock.calendar() + later
    return int(store.forget(WINDOW, RETENTION, now, **options).result())  # type: ignore[arg-type]


def left(store: Store, table: str) -> int:
    return int(store.reads.connection().execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def pages(store: Store) -> tuple[int, int]:
    reader = store.reads.connection()
    count, free = (int(reader.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count"))
    return count, free


def remembered(store: Store) -> dict[int, int]:
    """Return chunk counts by trace."""
    found = store.decided([trace_id(number) for number in range(1, 20)])
    return {int.from_bytes(id_, "big"): len(each.chunks) for id_, each in found.items()}


class TestSpans:
    @pytest.mark.parametrize(
        ("digest", "listed", "unlisted_only", "later", "goes"),
        [
            ("d", False, False, WINDOW - 5, False),
            ("d", False, False, WINDOW + 5, True),
            ("d", True, False, WINDOW + 5, True),
            ("d", True, True, WINDOW + 5, False),
            ("d", True, True, RETENTION - 5, False),
            ("d", True, True, RETENTION + 5, True),
            ("d", False, True, WINDOW + 5, True),
            ("", False, False, WINDOW + 5, False),
            ("", False, False, RETENTION - 5, False),
            ("", False, False, RETENTION + 5, True),
        ],
    )
    def test_spans_are_deleted_after_the_late_window_or_the_retention(
        self, store: Store, digest: str, listed: bool, unlisted_only: bool, later: float, goes: bool
    ) -> None:
        decide(store, 1, digest=digest, listed=listed)
        assert forget(store, later, unlisted_only=unlisted_only) == int(goes)
        assert left(store, "chunks") == (0 if goes else 2)

    @pytest.mark.parametrize("state", ["due", "leased", "done"])
    def test_spans_stay_until_their_judge_job_is_done(self, store: Store, state: str) -> None:
        decide(store, 1)
        store.commit(WriteSet(jobs=[JobRow("j", trace_id(1), "trace.m", 0.0, b"{}")])).result()
        if state != "due":
            store.jobs.lease(store.clock.running() + 1, 1).result()
        if state == "done":
            store.commit(WriteSet(ended=[JobEnd("j", "done")])).result()
        assert forget(store, WINDOW + 5) == int(state == "done")

    def test_only_the_chunks_of_expired_traces_are_deleted(self, store: Store) -> None:
        for number in (1, 2, 3):
            decide(store, number)
        assert forget(store, WINDOW + 5, keep={trace_id(2)}) == 2
        assert remembered(store) == {1: 0, 2: 2, 3: 0}
        assert [row[0] for row in store.reads.connection().execute("SELECT id FROM chunks ORDER BY id")] == [3, 4]
        assert store.decided([trace_id(1)])[trace_id(1)].known == frozenset()

    def test_spans_of_traces_decided_first_are_deleted_first(self, store: Store) -> None:
        for number in range(1, 6):
            decide(store, number)
        assert [forget(store, WINDOW + 5, limit=2), remembered(store)] == [2, {1: 0, 2: 0, 3: 2, 4: 2, 5: 2}]

    def test_ids_of_deleted_chunks_are_not_reused_after_a_restart(self, store: Store) -> None:
        decide(store, 1)
        forget(store, WINDOW + 5)
        store.close()
        again = Store(store.path, "off")
        assert again.next_chunk_id() == 3
        again.close()


class TestOtherRows:
    def test_results_are_deleted_oldest_first_in_batches_after_the_retention(self, store: Store) -> None:
        rows = [ResultRow(f"r{number}", f"u{number}", "trace.m", 1, b"{}") for number in range(5)]
        store.commit(WriteSet(results=rows)).result()
        assert forget(store, RETENTION - 5) == 0
        for gone, stay in ((2, "r2 r3 r4"), (2, "r4"), (1, ""), (0, "")):
            assert forget(store, RETENTION + 5, limit=2) == gone
            assert [row.id for row in store.reads.results_after(0)] == stay.split()

    def test_results_within_the_retention_stay(self, store: Store) -> None:
        rows = [ResultRow(f"r{number}", f"u{number}", "trace.m", 1, b"{}") for number in range(4)]
        store.commit(WriteSet(results=rows)).result()
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE results SET created_at = 0 WHERE seq <= 2")
        assert forget(store, 0.0) == 2
        assert [row.id for row in store.reads.results_after(0)] == ["r2", "r3"]

    def test_a_result_is_deleted_only_after_its_retention(self, store: Store) -> None:
        store.commit(WriteSet(results=[ResultRow("r", "u", "trace.m", 1, b"{}")])).result()
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE results SET created_at = 100.0")
        gone = [store.forget(WINDOW, RETENTION, 100.0 + RETENTION + late).result() for late in (0.0, 0.5)]
        assert gone == [0, 1]

    @pytest.mark.parametrize(
        ("closed", "later", "stays"), [(False, RETENTION + 5, 1), (True, RETENTION - 5, 1), (True, RETENTION + 5, 0)]
    )
    def test_only_a_closed_session_is_deleted_after_the_retention(
        self, store: Store, closed: bool, later: float, stays: int
    ) -> None:
        decide(store, 1, session="s")
        if closed:
            store.commit(WriteSet(closed={"s"})).result()
        forget(store, later)
        assert (left(store, "sessions"), len(store.reads.session_traces("s"))) == (stays, stays)
        forget(store, later)
        assert left(store, "traces") == stays, "a trace is deleted after its member row"

    def test_a_member_row_without_session_is_deleted_after_the_retention(self, store: Store) -> None:
        decide(store, 1, session="")
        forget(store, RETENTION - 5)
        assert left(store, "members") == 1
        forget(store, RETENTION + 5)
        assert left(store, "members") == 0

    def test_all_rows_are_deleted_with_a_limit_of_one_per_call(self, store: Store) -> None:
        for number in range(1, 6):
            decide(store, number, session="s" if number < 4 else "")
        store.commit(WriteSet(closed={"s"})).result()
        steps = 0
        while forget(store, RETENTION + 5, limit=1):
            steps += 1
            assert steps < 30
        assert {table: left(store, table) for table in ("chunks", "traces", "members", "sessions")} == {
            "chunks": 0,
            "traces": 0,
            "members": 0,
            "sessions": 0,
        }

    def test_ended_jobs_and_cached_verdicts_are_deleted_after_the_retention(self, store: Store) -> None:
        decide(store, 1)
        store.commit(WriteSet(jobs=[JobRow(id_, trace_id(1), "trace.m", 0.0, b"{}") for id_ in ("a", "b")])).result()
        store.jobs.lease(store.clock.running() + 1, 1).result()
        [leased] = [row[0] for row in store.reads.connection().execute("SELECT id FROM jobs WHERE state = 'leased'")]
        store.commit(WriteSet(ended=[JobEnd(leased, "done")])).result()
        store.verdicts.keep("k", b"v").result()
        forget(store, RETENTION - 5)
        assert (store.jobs.counts(), store.verdicts.recall("k")) == ({"due": 1, "done": 1}, b"v")
        forget(store, RETENTION + 5)
        assert (store.jobs.counts(), store.verdicts.recall("k")) == ({"due": 1}, None)


def test_the_file_shrinks_until_a_quarter_of_it_is_free(store: Store) -> None:
    noise = random.Random(1)
    for number in range(1, 26):
        chunk = Chunk(store.next_chunk_id(), trace_id(number), False, 1, 1, noise.randbytes(100_000))
        store.append([chunk]).result()
        decided = DecidedTrace(trace_id(number), 1, False, "d", frozenset({b"1" * 8}), [chunk.id], 10)
        store.commit(WriteSet(traces=[decided])).result()
    before, _ = pages(store)
    kept = {trace_id(number) for number in range(1, 9)}
    forgotten = [forget(store, WINDOW + 1, keep=kept) for _ in range(5)]
    now, free = pages(store)
    assert (sum(forgotten), forgotten[-1]) == (17, 0)
    assert now < 0.75 * before
    assert abs(free - now / 4) <= 1
