"""Side effects of a decision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import (
    Consumed,
    DecidedTrace,
    Extent,
    JobEnd,
    JobRow,
    JudgedRow,
    ListedRow,
    OutboxBatch,
    ResponseRow,
    ResultRow,
    SeriesRow,
    SessionTraceRow,
    Store,
    WriteSet,
)
from support.database import open_database

ID, OTHER, UNKNOWN = (number.to_bytes(16, "big") for number in (1, 2, 9))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def trace(id_: bytes, revision: int = 1) -> DecidedTrace:
    return DecidedTrace(id_, revision, False, "d", frozenset({b"1" * 8}), (7,), 5)


def result(id_: str, unit: str, metric: str = "trace.m", body: bytes = b"{}", revision: int = 1) -> ResultRow:
    return ResultRow(id_, unit, metric, revision, body)


def row_of(store: Store, id_: bytes) -> tuple[object, ...]:
    columns = "revision, final, digest, known, chunks, size, decided_at > 0"
    found = store.reads.connection().execute(f"SELECT {columns} FROM traces WHERE trace_id = ?", (id_,)).fetchone()
    return tuple(found)


def about(store: Store) -> dict[str, int]:
    """Return the unit of each result."""
    return dict(store.reads.connection().execute("SELECT id, about FROM results"))


class TestResults:
    def test_the_first_of_two_results_with_one_id_is_stored(self, store: Store) -> None:
        rows = [result("a", "u", body=b"first"), result("a", "u", body=b"second"), result("b", "u", "trace.n")]
        new = store.commit(WriteSet(results=rows)).result()
        assert [(row.id, row.seq, row.body) for row in new] == [("a", 1, b"first"), ("b", 2, b"{}")]
        assert [row.body for row in store.reads.results_after(0)] == [b"first", b"{}"]

    @pytest.mark.parametrize("unit", [ID.hex(), f"{ID.hex()}:{'1' * 16}"])
    def test_a_trace_decided_again_keeps_its_earlier_results(self, store: Store, unit: str) -> None:
        level = "turn" if ":" in unit else "trace"
        given = result("a", unit, f"{level}.m")
        assert len(store.commit(WriteSet(traces=[trace(ID)], results=[given])).result()) == 1
        again = WriteSet(traces=[trace(ID, 2)], results=[given, result("b", unit, f"{level}.n")])
        assert [row.id for row in store.commit(again).result()] == ["b"]
        assert about(store) == {"a": 1, "b": 1}

    def test_each_result_is_filed_under_its_trace_or_session(self, store: Store) -> None:
        store.commit(WriteSet(traces=[trace(OTHER)], touched={"chat", ID.hex()})).result()
        sessions = dict(store.reads.connection().execute("SELECT session_id, no FROM sessions"))
        rows = [
            result("trace", ID.hex()),
            result("turn", f"{ID.hex()}:{'1' * 16}", "turn.m"),
            result("earlier", OTHER.hex()),
            result("gone", UNKNOWN.hex()),
            result("session", "chat", "session.m"),
            result("alike", ID.hex(), "session.m"),
            result("nameless", "unheard of", "session.m"),
            result("no trace", "chat", "trace.n"),
        ]
        store.commit(WriteSet(traces=[trace(ID)], results=rows)).result()
        assert about(store) == {
            **dict.fromkeys(("trace", "turn"), 2),
            "earlier": 1,
            "gone": 3,
            "session": -sessions["chat"],
            "alike": -sessions[ID.hex()],
            "nameless": 0,
            "no trace": -sessions["chat"],
        }
        assert {key[0] for key in store.reads.newest_results(["chat"])} == {"chat"}

    def test_a_result_or_member_of_a_deleted_trace_creates_its_tombstone(self, store: Store) -> None:
        member = SessionTraceRow(OTHER, "", 1, 2, b"{}")
        store.commit(WriteSet(results=[result("a", UNKNOWN.hex())], session_traces=[member])).result()
        for id_ in (UNKNOWN, OTHER):
            assert row_of(store, id_) == (1, 1, "", b"", b"[]", 0, 1)
            found = store.decided([id_])
            assert not found or (found[id_].revision, found[id_].final, found[id_].chunks) == (1, True, ())


class TestTracesOfOtherCollectors:
    def test_a_trace_of_another_collector_gets_a_row_and_its_sent_contents(self, store: Store) -> None:
        contents = {ID: b"kept"}
        store.commit(WriteSet(strangers={OTHER: "other", ID: "theirs"}, contents=contents)).result()
        assert [row_of(store, id_) for id_ in (ID, OTHER)] == [
            (0, 0, digest, b"", b"[]", 0, 1) for digest in ("theirs", "other")
        ]
        kept = store.reads.connection().execute("SELECT no, size, data, kept_at > 0 FROM kept").fetchall()
        assert kept == [(1, 4, b"kept", 1)]

    def test_sent_contents_stay_until_newer_contents_arrive(self, store: Store) -> None:
        listed = [ListedRow(ID, 1, "a", "s", "", "", False, b"{}")]
        member = SessionTraceRow(ID, "", 1, 2, b"{}")
        theirs = WriteSet(strangers={ID: "theirs"}, contents={ID: b"kept"}, session_traces=[member], listed=listed)
        store.commit(theirs).result()
        assert store.kept.keep(0.0, store.clock.calendar() + 10) == 0
        store.commit(WriteSet(strangers={ID: "newer", OTHER: "other"})).result()
        kept = store.reads.connection().execute("SELECT no, data FROM kept").fetchall()
        assert kept == [(1, b"kept")]
        assert [row_of(store, id_)[2] for id_ in (ID, OTHER)] == ["newer", "other"]
        store.commit(WriteSet(strangers={ID: "newest"}, contents={ID: b"newest"})).result()
        kept = store.reads.connection().execute("SELECT no, size, data FROM kept").fetchall()
        assert kept == [(1, 6, b"newest")]

    def test_a_trace_decided_here_is_not_replaced_by_another_collector(self, store: Store) -> None:
        store.commit(WriteSet(traces=[trace(ID)])).result()
        ours = row_of(store, ID)
        store.commit(WriteSet(strangers={ID: "theirs", OTHER: "other"}, contents={ID: b"kept"})).result()
        assert row_of(store, ID) == ours
        assert store.reads.connection().execute("SELECT count(*) FROM kept").fetchone() == (0,)


class TestSessions:
    def touched(self, store: Store) -> dict[str, tuple[int, float]]:
        rows = store.reads.connection().execute("SELECT session_id, open, touched_at FROM sessions")
        return {id_: (open_, at) for id_, open_, at in rows}

    def test_a_session_scored_only_by_another_collector_is_stored_but_not_open(self, store: Store) -> None:
        store.commit(WriteSet(touched={"ours", "both"}, closed={"done"})).result()
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE sessions SET touched_at = 7.0")
        before = store.clock.calendar()
        store.commit(WriteSet(elsewhere={"theirs", "both", "done"})).result()
        found = self.touched(store)
        assert {id_: open_ for id_, (open_, _) in found.items()} == {"ours": 1, "both": 1, "theirs": 0, "done": 0}
        assert {id_ for id_, (_, at) in found.items() if at >= before} == {"theirs", "done"}
        assert sorted(store.reads.open_sessions()) == ["both", "ours"]

    def test_the_time_of_a_session_changes_when_it_opens_or_closes(self, store: Store) -> None:
        def set_back() -> None:
            with open_database(store.path / "pandaeval.db") as connection:
                connection.execute("UPDATE sessions SET touched_at = 7.0")

        steps = []
        for changes in (
            WriteSet(touched={"s"}),
            WriteSet(touched={"s"}),
            WriteSet(closed={"s"}),
            WriteSet(closed={"s"}),
            WriteSet(touched={"s"}),
        ):
            set_back()
            store.commit(changes).result()
            open_, at = self.touched(store)["s"]
            steps.append((open_, at != 7.0))
        assert steps == [(1, True), (1, False), (0, True), (0, True), (1, True)]


def test_the_same_changes_can_be_committed_twice(store: Store) -> None:
    changes = WriteSet(
        traces=[trace(ID)],
        session_traces=[SessionTraceRow(ID, "s", 1, 2, b"{}")],
        touched={"s"},
        responses=[ResponseRow(ID, b"digest", False), ResponseRow(ID, b"digest", True)],
        labels=[("agent", "a"), ("service", "a")],
        endings=["s"],
    )
    for _ in range(2):
        store.commit(changes).result()
    assert sorted(store.reads.tally.labels()) == [("agent", "a"), ("service", "a")]
    assert store.reads.endings() == ["s"]
    responses = store.reads.connection().execute(
        "SELECT digest, continued, no, block FROM responses ORDER BY continued"
    )
    assert responses.fetchall() == [(b"digest", 0, 1, 0), (b"digest", 1, 1, 0)]


def test_an_outbox_batch_is_numbered_by_its_last_item(store: Store) -> None:
    batches = [OutboxBatch("logs", 3, b"abc"), OutboxBatch("traces", 1, b"d"), OutboxBatch("logs", 2, b"ef")]
    for each in (batches[:2], batches[2:]):
        store.commit(WriteSet(outbox=each)).result()
    rows = store.reads.connection().execute("SELECT seq, signal, items, size, body FROM outbox").fetchall()
    assert rows == [(3, "logs", 3, 3, b"abc"), (4, "traces", 1, 1, b"d"), (6, "logs", 2, 2, b"ef")]


def test_a_commit_stores_the_read_position_of_members(store: Store) -> None:
    read = Consumed(3, 9, 2, {b"a session": Extent(4, 8)})
    store.commit(WriteSet(strangers={ID: "theirs"}, read=[read])).result()
    assert store.members_read.load() == {3: read}


def test_each_time_column_uses_its_own_clock(store: Store) -> None:
    """Running, calendar or wall time."""
    running, calendar, wall = 1000.0, 5000.0, 9000.0
    store.clock._running, store.clock._calendar, store.clock._began = running, calendar, 0.0
    store.clock._wall, store.clock._steady = (lambda: wall), (lambda: 0.0)
    jobs = [JobRow(name, ID, "trace.m", delay, b"{}") for name, delay in (("a", 0.0), ("b", 50.0), ("c", 70.0))]
    changes = WriteSet(
        traces=[trace(ID)],
        results=[result("r", ID.hex()), result("gone", UNKNOWN.hex())],
        judged=[JudgedRow(ID.hex(), "trace.m", "", "a", 0.5, True, 0.5, "judge", "1", 1.0)],
        session_traces=[SessionTraceRow(OTHER, "s", 1, 2, b"{}")],
        touched={"s"},
        elsewhere={"theirs"},
        strangers={b"stranger": "theirs"},
        contents={b"stranger": b"kept"},
        outbox=[OutboxBatch("logs", 1, b"item")],
        series=[SeriesRow("s", "[]", 1, 1, 1.0, {0: 1}, {})],
        jobs=jobs,
    )
    store.commit(changes).result()
    store.jobs.lease(running, 1).result()
    store.commit(WriteSet(traces=[trace(ID, 2)], jobs=jobs[1:2], ended=[JobEnd("a", "done")])).result()

    def times(query: str) -> list[object]:
        return [at for (at,) in store.reads.connection().execute(query)]

    assert times("SELECT decided_at FROM traces") == [calendar] * 4
    assert times("SELECT created_at FROM results") == [calendar] * 2
    assert times("SELECT at FROM judged") == times("SELECT kept_at FROM kept") == [calendar]
    assert times("SELECT touched_at FROM sessions") == [calendar] * 2
    assert times("SELECT created_at FROM outbox") == [running]
    assert times("SELECT due_at FROM jobs ORDER BY id") == [running, running + 50.0, running + 70.0]
    assert times("SELECT created_at FROM jobs") == [running] * 3
    assert times("SELECT ended_at FROM jobs ORDER BY id") == [calendar, None, calendar]
    assert times("SELECT start_ns FROM series") == [wall * 1e9]
