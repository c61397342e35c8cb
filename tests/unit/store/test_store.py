"""Durability, retention and damage of the store."""

from __future__ import annotations

import lzma
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import pandaeval_collector.store.connection as damage_module
from pandaeval_collector.config.sections_in import LEAST_STORE
from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    ResultRow,
    SeriesRow,
    SessionTraceRow,
    Store,
    StoreBusyError,
    StoreFullError,
    StoreReader,
    StoreVersionError,
    WriteSet,
    outbox_batches,
)
from pandaeval_collector.store.connection import PAGE_BYTES
from pandaeval_collector.store.schema import VERSION
from pandaeval_lab.replay.trace_files import traces_by_start
from support.database import open_database

_GOLDEN = Path(__file__).parents[2] / "golden"

DAY_S = 86_400.0
T1, T2, T3 = (bytes(15) + bytes([number]) for number in (1, 2, 3))
OpenStore = Callable[..., Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    """Open the test's store; close it at the end."""
    opened: list[Store] = []

    def make(max_bytes: int = 10 << 30) -> Store:
        for each in opened:
            each.close()
        opened.append(Store(tmp_path / "data", "off", max_bytes))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()


def put(store: Store, trace_id: bytes, data: bytes = b"spans", start_ns: int = 1) -> int:
    chunk = Chunk(store.next_chunk_id(), trace_id, False, 1, start_ns, data)
    store.append([chunk]).result(10)
    return chunk.id


def decide(store: Store, trace_id: bytes, *chunks: int, revision: int = 1) -> None:
    known = frozenset({trace_id[:8]})
    store.commit(WriteSet(traces=[DecidedTrace(trace_id, revision, False, "digest", known, chunks, 5)])).result(10)


def result(id_: str, unit: str = "u", revision: int = 1, metric: str = "trace.m") -> ResultRow:
    return ResultRow(id_, unit, metric, revision, b'{"id": "%s"}' % id_.encode())


def now_in(seconds: float) -> float:
    """Return a future time."""
    return time.time() + seconds


class TestChunks:
    def test_stored_chunks_survive_a_restart(self, open_store: OpenStore) -> None:
        store = open_store()
        large = os.urandom(100) * 1000
        first, second = put(store, T1, large), put(store, T2)
        store = open_store()
        assert [(chunk.id, chunk.trace_id, chunk.data) for chunk in store.reads.open_chunks()] == [
            (first, T1, large),
            (second, T2, b"spans"),
        ]
        assert put(store, T3) > second

    def test_a_chunk_is_open_until_a_decision_names_it(self, store: Store) -> None:
        first = put(store, T1)
        decide(store, T1, first)
        late = put(store, T1)
        assert [chunk.id for chunk in store.reads.open_chunks()] == [late]

    def test_reading_a_missing_chunk_is_an_error(self, store: Store) -> None:
        first, second = put(store, T1), put(store, T1)
        store.discard([first]).result(10)
        with pytest.raises(LookupError, match="1 of 2 chunks"):
            store.reads.chunks([first, second])

    def test_traces_are_ordered_by_their_earliest_start(self, store: Store) -> None:
        ids = [put(store, T1, start_ns=50), put(store, T2, start_ns=20), put(store, T1, start_ns=10)]
        assert list(traces_by_start(store.reads)) == [(T1, [ids[0], ids[2]], 10, 2), (T2, [ids[1]], 5, 1)]

    def test_a_long_read_does_not_hide_later_commits(self, store: Store) -> None:
        put(store, T1), put(store, T2)
        reading = traces_by_start(store.reads)
        next(reading)
        store.put("key", "value").result(10)
        assert store.reads.get("key") == "value"
        assert len(list(reading)) == 1

    def test_an_empty_store_leaves_room_in_the_smallest_disk_budget(self, store: Store) -> None:
        assert store.size_bytes() < 0.7 * LEAST_STORE, "a large empty store would shorten the retention"

    def test_a_full_disk_budget_rejects_spans_until_old_spans_are_deleted(self, open_store: OpenStore) -> None:
        store = open_store(2 << 20)
        ids = [put(store, T1, os.urandom(40_000)) for _ in range(5)]
        with pytest.raises(StoreFullError, match=r"store\.max_bytes is 2\.0 MiB"):
            ids.extend(put(store, T1, os.urandom(40_000)) for _ in range(100))
        decide(store, T1, *ids)
        assert store.forget(600, DAY_S, now_in(601)).result(10) == 1
        put(store, T2, os.urandom(40_000))


class TestDecisions:
    def test_the_stored_fields_of_a_decided_trace_are_read_back(self, store: Store) -> None:
        decide(store, T1, 1, 2, revision=3)
        found = store.decided([T1, T2])
        assert list(found) == [T1]
        assert (found[T1].revision, found[T1].chunks, found[T1].known, found[T1].final) == (
            3,
            (1, 2),
            frozenset({T1[:8]}),
            False,
        )

    def test_a_result_is_stored_once_under_its_id(self, store: Store) -> None:
        first = store.commit(WriteSet(results=[result("a"), result("b")])).result(10)
        again = store.commit(WriteSet(results=[result("b"), result("c", revision=2)])).result(10)
        assert [(row.id, row.seq) for row in first] == [("a", 1), ("b", 2)]
        assert [row.id for row in again] == ["c"]
        assert [row.id for row in store.reads.results_after(0)] == ["a", "b", "c"]
        assert [row.id for row in store.reads.results_after(first[1].seq)] == ["c"]

    def test_an_earlier_result_can_become_the_newest_again(self, store: Store) -> None:
        for each in (result("a"), result("b", revision=2), result("a", revision=3)):
            assert len(store.commit(WriteSet(results=[each], touched={"u"})).result(10)) == 1
        assert [(row.id, row.revision, row.seq) for row in store.reads.results_after(0)] == [("b", 2, 2), ("a", 3, 3)]
        assert store.reads.newest_results(["u"])["u", "trace.m"].id == "a"
        assert store.commit(WriteSet(results=[result("a", revision=4)], touched={"u"})).result(10) == []

    def test_the_newest_result_of_each_unit_and_metric_is_returned(self, store: Store) -> None:
        rows = [result("a"), result("b", revision=2), result("c", metric="trace.n"), result("d", unit="v")]
        store.commit(WriteSet(results=rows, touched={"u", "v"})).result(10)
        standing = store.reads.newest_results(["u", "v", "w"])
        assert {key: row.id for key, row in standing.items()} == {
            ("u", "trace.m"): "b",
            ("u", "trace.n"): "c",
            ("v", "trace.m"): "d",
        }

    def test_a_decision_that_fails_stores_nothing(self, store: Store) -> None:
        good = SeriesRow("pandaeval.evaluations", "[]", 1, 1, 1.0, {0: 1}, {})
        bad = SeriesRow("pandaeval.evaluations", "[]", 1, 1, 1.0, {7: 1}, {})  # a bucket that the series does not have
        changes = WriteSet(
            traces=[DecidedTrace(T1, 1, False, "", frozenset(), (), 5)],
            results=[result("a")],
            outbox=[*outbox_batches("logs", [b"x"])],
            series=[good, bad],
        )
        assert isinstance(store.commit(changes).exception(10), IndexError)
        assert not store.decided([T1])
        assert not store.reads.results_after(0)
        assert not store.outbox.after("logs", 0)
        assert not store.reads.tally.page("otlp", "pandaeval.evaluations")

    def test_a_trace_belongs_to_one_session(self, store: Store) -> None:
        def row(trace_id: bytes, session: str, start: int) -> SessionTraceRow:
            return SessionTraceRow(trace_id, session, start, start + 1, b"{}")

        store.commit(WriteSet(session_traces=[row(T1, "s", 2), row(T2, "s", 1)], touched={"s"})).result(10)
        assert [each.trace_id for each in store.reads.session_traces("s")] == [T2, T1]
        store.commit(WriteSet(session_traces=[row(T1, "t", 2)], touched={"s", "t"})).result(10)
        assert store.reads.session_of([T1, T2, T3]) == {T1: "t", T2: "s"}
        assert [each.trace_id for each in store.reads.session_traces("s")] == [T2]
        store.commit(WriteSet(moved=[T1], touched={"t"}, closed={"s"})).result(10)
        assert store.reads.session_of([T1]) == {}
        assert list(store.reads.open_sessions()) == ["t"]

    def test_series_increments_add_up(self, store: Store) -> None:
        row = SeriesRow("pandaeval.evaluations", '[["a","b"]]', 3, 2, 1.5, {0: 1, 2: 1}, {2: (0.5, "t", "s", 9)})
        store.commit(WriteSet(series=[row])).result(10)
        store.commit(WriteSet(series=[row])).result(10)
        [found] = store.reads.tally.page("otlp", "pandaeval.evaluations")
        assert (found.count, found.total, found.buckets) == (4, 3.0, (2, 0, 2))
        assert found.exemplars == ((2, (0.5, "t", "s", 9)),)


class TestForgetting:
    def test_spans_are_deleted_after_the_late_window_and_leave_a_tombstone(self, store: Store) -> None:
        chunk = put(store, T1)
        decide(store, T1, chunk)
        assert store.forget(600, 7 * DAY_S, now_in(599)).result(10) == 0
        assert store.reads.chunks([chunk])
        assert store.forget(600, 7 * DAY_S, now_in(601)).result(10) == 1
        with pytest.raises(LookupError):
            store.reads.chunks([chunk])
        tombstone = store.decided([T1])[T1]
        assert (tombstone.final, tombstone.known, tombstone.chunks) == (True, frozenset(), ())

    def test_tombstones_and_results_are_deleted_after_the_retention(self, store: Store) -> None:
        decide(store, T1, put(store, T1))
        store.commit(WriteSet(results=[result("a")])).result(10)
        store.forget(600, 7 * DAY_S, now_in(7 * DAY_S + 1)).result(10)
        assert not store.decided([T1])
        assert not store.reads.results_after(0)

    def test_open_traces_and_open_sessions_are_not_deleted(self, store: Store) -> None:
        chunk = put(store, T1)
        row = SessionTraceRow(T2, "open", 1, 2, b"{}")
        old = SessionTraceRow(T3, "closed", 1, 2, b"{}")
        store.commit(WriteSet(session_traces=[row, old], touched={"open"}, closed={"closed"})).result(10)
        store.forget(600, 7 * DAY_S, now_in(8 * DAY_S)).result(10)
        assert [each.id for each in store.reads.open_chunks()] == [chunk]
        assert len(store.reads.session_traces("open")) == 1
        assert not store.reads.session_traces("closed")

    def test_spans_of_traces_to_keep_are_not_deleted(self, store: Store) -> None:
        first, second = put(store, T1), put(store, T2)
        decide(store, T1, first)
        decide(store, T2, second)
        assert store.forget(600, 7 * DAY_S, now_in(601), keep={T1}).result(10) == 1
        assert store.reads.chunks([first])

    def test_each_call_deletes_at_most_the_limit(self, store: Store) -> None:
        for number in range(5):
            trace_id = bytes(15) + bytes([100 + number])
            decide(store, trace_id, put(store, trace_id))
        taken = [store.forget(600, 7 * DAY_S, now_in(601), limit=2).result(10) for _ in range(4)]
        assert taken == [2, 2, 1, 0]

    def test_the_file_shrinks_after_a_large_deletion(self, store: Store, tmp_path: Path) -> None:
        ids = [put(store, T1, os.urandom(60_000)) for _ in range(100)]
        decide(store, T1, *ids)
        store.checkpoint()
        before = (tmp_path / "data" / "pandaeval.db").stat().st_size
        store.forget(600, 7 * DAY_S, now_in(601)).result(10)
        store.forget(600, 7 * DAY_S, now_in(601)).result(10)
        store.checkpoint()
        assert (tmp_path / "data" / "pandaeval.db").stat().st_size < before / 3

    def test_the_file_does_not_shrink_after_a_small_deletion(self, store: Store, tmp_path: Path) -> None:
        for number in range(20):
            trace_id = bytes(15) + bytes([100 + number])
            chunk = put(store, trace_id, os.urandom(60_000))
            if number % 5 == 0:
                decide(store, trace_id, chunk)
        store.checkpoint()
        before = (tmp_path / "data" / "pandaeval.db").stat().st_size
        used = store.size_bytes()
        assert store.forget(600, 7 * DAY_S, now_in(601)).result(10) == 4
        store.checkpoint()
        assert store.size_bytes() < used
        assert (tmp_path / "data" / "pandaeval.db").stat().st_size == before


class TestOpening:
    def test_a_new_file_has_the_current_schema_and_is_private(self, store: Store, tmp_path: Path) -> None:
        file = tmp_path / "data" / "pandaeval.db"
        assert user_version(file) == VERSION
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("version", [1, 18, 99])
    def test_a_file_of_another_version_is_rejected_and_not_changed(
        self, version: int, open_store: OpenStore, tmp_path: Path
    ) -> None:
        open_store().close()
        file = tmp_path / "data" / "pandaeval.db"
        with open_database(file) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        before = file.read_bytes()
        with pytest.raises(StoreVersionError) as raised:
            open_store()
        assert str(raised.value).startswith(f"{file} has schema version {version}, but this program reads {VERSION}. ")
        assert ("Install the version that wrote this file" in str(raised.value)) == (version > VERSION)
        assert user_version(file) == version
        assert file.read_bytes() == before

    def test_a_store_of_version_0_1_0_is_rejected_and_not_changed(self, open_store: OpenStore, tmp_path: Path) -> None:
        file = tmp_path / "data" / "pandaeval.db"
        file.parent.mkdir()
        written = lzma.decompress((_GOLDEN / "version_0_1_0" / "pandaeval.db.xz").read_bytes())
        file.write_bytes(written)
        with pytest.raises(StoreVersionError, match=r"has schema version 14, .* run `pandaeval store export`"):
            open_store()
        assert file.read_bytes() == written

    @pytest.mark.parametrize("version", [0, VERSION])
    def test_a_file_of_another_program_is_rejected_and_not_changed(
        self, version: int, open_store: OpenStore, tmp_path: Path
    ) -> None:
        file = tmp_path / "data" / "pandaeval.db"
        file.parent.mkdir()
        with open_database(file) as connection:
            connection.execute("CREATE TABLE bookmarks (url TEXT)")
            connection.execute(f"PRAGMA user_version = {version}")
        before = file.read_bytes()
        with pytest.raises(StoreVersionError, match=r"is an SQLite file of another program \(tables bookmarks\)"):
            open_store()
        assert file.read_bytes() == before

    def test_one_directory_has_one_owner(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(StoreBusyError, match="in use by another collector"):
            Store(tmp_path / "data")

    def test_a_damaged_file_is_quarantined_and_never_deleted(
        self, open_store: OpenStore, tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
    ) -> None:
        store = open_store()
        for number in range(40):
            decide(store, bytes(15) + bytes([number]), put(store, bytes(15) + bytes([number]), os.urandom(20_000)))
        store.close()
        file = tmp_path / "data" / "pandaeval.db"
        damaged = damage(file.read_bytes())
        file.write_bytes(damaged)
        store = open_store()
        assert store.was_damaged
        assert "put aside" in caplog.text
        [kept] = [
            each for each in file.parent.glob("pandaeval.db.damaged-*") if not each.name.endswith(("-wal", "-shm"))
        ]
        assert kept.read_bytes()[100:] == damaged[100:]  # the header counts how often a file was opened
        decide(store, T1, put(store, T1))
        assert not open_store().was_damaged

    def test_damage_in_a_large_store_is_noted_when_it_is_read(
        self, open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full check would delay start-up."""
        monkeypatch.setattr(damage_module, "_SMALL_BYTES", 0)
        open_store().close()
        _destroy(tmp_path / "data" / "pandaeval.db", "labels")
        store = open_store()
        assert not store.was_damaged
        with pytest.raises(sqlite3.DatabaseError), store.reads.snapshot():
            store.reads.tally.labels()
        store.close()
        assert open_store().was_damaged
        assert not open_store().was_damaged

    def test_damage_found_by_another_process_is_noted(
        self, open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(damage_module, "_SMALL_BYTES", 0)
        store = open_store()
        chunk = put(store, T1)
        store.close()
        _destroy(tmp_path / "data" / "pandaeval.db", "chunks")
        with closing(StoreReader(tmp_path / "data")) as reader, pytest.raises(sqlite3.DatabaseError), reader.snapshot():
            reader.chunks([chunk])
        assert open_store().was_damaged

    def test_damage_found_by_a_write_is_noted(
        self, open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(damage_module, "_SMALL_BYTES", 0)
        store = open_store()
        put(store, T1)
        store.close()
        _destroy(tmp_path / "data" / "pandaeval.db", "endings")
        store = open_store()
        with pytest.raises(sqlite3.DatabaseError):
            store.append([], ["a session"]).result()
        store.close()
        assert open_store().was_damaged

    @pytest.mark.parametrize("suffix", ["-wal", "-shm"])
    @pytest.mark.parametrize("how", ["noise", "cut", "zeros"])
    def test_a_store_with_a_damaged_wal_or_shm_file_starts(
        self, store: Store, tmp_path: Path, suffix: str, how: str
    ) -> None:
        for number in range(40):
            decide(store, bytes(15) + bytes([number]), put(store, bytes(15) + bytes([number]), os.urandom(20_000)))
        copy = tmp_path / "copy"  # the files that a killed process leaves
        shutil.copytree(tmp_path / "data", copy)
        file = copy / f"pandaeval.db{suffix}"
        content = file.read_bytes()
        third = len(content) // 3
        middle = {"noise": os.urandom(third), "cut": b"", "zeros": bytes(third)}[how]
        file.write_bytes(content[:third] + middle + content[2 * third :])
        other = Store(copy, "off")
        decide(other, T1, put(other, T1))
        assert T1 in other.decided([T1])
        other.close()


def _destroy(file: Path, name: str) -> None:
    """Overwrite a table's first page in a closed file."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    connection.close()
    with file.open("r+b") as content:
        content.seek((root - 1) * PAGE_BYTES)
        content.write(b"\xff" * PAGE_BYTES)


def _overwrite(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + b"\xff" * 4000 + content[at + 4000 :]


@pytest.fixture(
    params=[
        pytest.param(lambda content: b"not a database at all, but long enough for one" * 400, id="another file"),
        pytest.param(lambda content: content[: len(content) // 2], id="cut in half"),
        pytest.param(_overwrite(0), id="header"),
        pytest.param(_overwrite(16384 * 2), id="page of a table"),
        pytest.param(lambda content: content[:16384] + bytes(len(content) - 16384), id="zeros behind the header"),
    ]
)
def damage(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    made: Callable[[bytes], bytes] = request.param
    return made


def user_version(file: Path) -> int:
    connection = sqlite3.connect(file)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.close()
    return version


def test_a_file_that_ends_within_a_page_is_damaged(
    open_store: OpenStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite would continue with zeros."""
    store = open_store()
    put(store, T1)
    store.close()
    file = tmp_path / "data" / "pandaeval.db"
    os.truncate(file, file.stat().st_size - 100)
    assert open_store().was_damaged
    assert "ends within a page" in caplog.text


def test_ids_of_discarded_chunks_are_not_reused_after_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    ids = [put(store, T1) for _ in range(3)]
    store.discard(ids[1:]).result(10)
    store.close()
    assert open_store().next_chunk_id() == ids[-1] + 1
