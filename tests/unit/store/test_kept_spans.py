"""Kept contents of decided traces."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import zstandard

from pandaeval_collector.store import Chunk, DecidedTrace, JobEnd, JobRow, ListedRow, Store, WriteSet, chunks
from pandaeval_collector.store.chunks import packed_contents, stored_traces
from pandaeval_collector.store.connection import FILE_NAME, connect
from support.database import kept_bytes, open_database

WINDOW, RETENTION = 600.0, 7 * 86_400.0
Parts = list[tuple[bool, bytes]]


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def appended(store: Store, number: int, parts: Parts) -> list[int]:
    chunks = [Chunk(store.next_chunk_id(), trace_id(number), logs, 1, 1, data) for logs, data in parts]
    store.append(chunks).result()
    return [chunk.id for chunk in chunks]


def decide(store: Store, number: int, *data: bytes, digest: str = "d", size: int = 5) -> list[int]:
    """Decide a listed trace; return its chunk IDs."""
    ids = appended(store, number, [(False, each) for each in data or (b"spans",)])
    trace = DecidedTrace(trace_id(number), 1, False, digest, frozenset({b"1" * 8}), ids, size)
    listed = ListedRow(trace.trace_id, 1, "a", "s", "", "", False, b"{}")
    store.commit(WriteSet(traces=[trace], listed=[listed])).result()
    return ids


def keep(store: Store, later: float = WINDOW + 1, **options: object) -> int:
    return store.kept.keep(WINDOW, store.clock.calendar() + later, **options)  # type: ignore[arg-type]


def readable(store: Store) -> list[int]:
    rows = store.reads.connection().execute("SELECT no FROM kept ORDER BY no")
    return [no for (no,) in rows]


class TestKeeping:
    def test_kept_contents_have_all_parts_in_order_of_arrival(self, store: Store) -> None:
        parts = [(False, b"one" * 3000), (True, b"logs"), (False, b""), (True, b"x" * 70_000)]
        ids = appended(store, 1, parts)
        trace = DecidedTrace(trace_id(1), 1, False, "d", frozenset({b"1" * 8}), ids[::-1], 5)
        store.commit(
            WriteSet(traces=[trace], listed=[ListedRow(trace.trace_id, 1, "a", "s", "", "", False, b"{}")])
        ).result()
        assert store.reads.contents(trace_id(1)) == parts
        assert keep(store) == 1
        assert store.reads.contents(trace_id(1)) == parts
        assert readable(store) == [1]
        assert store.reads.held(trace_id(1)) == ("d", ())
        with pytest.raises(LookupError):
            store.reads.chunks(ids)
        size, data = store.reads.connection().execute("SELECT size, data FROM kept").fetchone()
        assert kept_bytes(store) == size == len(data)

    def test_an_unknown_trace_has_no_contents(self, store: Store) -> None:
        assert store.reads.contents(trace_id(1)) == []
        decide(store, 1)
        assert store.reads.contents(trace_id(2)) == []
        assert kept_bytes(store) == 0

    @pytest.mark.parametrize(("later", "taken"), [(WINDOW - 1, 0), (WINDOW + 1, 1)])
    def test_a_trace_is_kept_when_its_late_window_is_over(self, store: Store, later: float, taken: int) -> None:
        decide(store, 1)
        assert keep(store, later) == taken == len(readable(store))

    def test_wanted_quarantined_and_empty_traces_are_not_moved(self, store: Store) -> None:
        decide(store, 1)
        decide(store, 2)
        decide(store, 3, digest="")
        decide(store, 4, size=0)
        assert keep(store, wanted={trace_id(1)}) == 1
        assert readable(store) == [2]
        assert keep(store) == 1
        assert readable(store) == [1, 2]

    @pytest.mark.parametrize(("leased", "ended"), [(False, False), (True, False), (True, True)])
    def test_a_trace_is_not_moved_until_its_judge_job_is_done(self, store: Store, leased: bool, ended: bool) -> None:
        decide(store, 1)
        store.commit(WriteSet(jobs=[JobRow("j", trace_id(1), "trace.m", 0.0, b"{}")])).result()
        if leased:
            store.jobs.lease(store.clock.running() + 1, 1).result()
        if ended:
            store.commit(WriteSet(ended=[JobEnd("j", "done")])).result()
        assert keep(store) == int(ended)

    def test_traces_are_moved_in_batches_in_order_of_decision(self, store: Store) -> None:
        for number in range(1, 6):
            decide(store, number)
        assert [keep(store, limit=2), readable(store)] == [2, [1, 2]]
        assert [keep(store, limit=2), keep(store, limit=2), keep(store)] == [2, 1, 0]
        assert readable(store) == [1, 2, 3, 4, 5]

    def test_a_batch_is_limited_in_bytes_but_moves_at_least_one_trace(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chunks, "_READ_BYTES", 10)
        for number, size in enumerate((11, 5, 5, 1), 1):
            decide(store, number, size=size)
        taken = []
        while keep(store):
            taken.append(readable(store))
        assert taken == [[1], [1, 2, 3], [1, 2, 3, 4]]

    def test_an_unreadable_trace_is_deleted_and_the_others_are_kept(self, store: Store) -> None:
        ids = [decide(store, number) for number in (1, 2, 3)]
        store.discard(ids[1]).result()
        assert keep(store) == 3
        assert readable(store) == [1, 3]
        assert store.reads.held(trace_id(2)) == ("d", ())
        assert keep(store) == 0

    def test_damaged_compressed_spans_are_deleted_and_other_traces_are_kept(self, store: Store) -> None:
        decide(store, 1, bytes(9000))
        decide(store, 2, bytes(9000))
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE chunks SET data = substr(data, 1, 8) WHERE id = 1")
        assert keep(store) == 2
        assert readable(store) == [2]

    def test_a_trace_decided_again_during_the_move_is_not_moved(self, store: Store) -> None:
        ids = {number: decide(store, number) for number in (1, 2)}
        found = store.reads.chunks([*ids[1], *ids[2]])
        due = [(no, f"[{each[0]}]".encode()) for no, each in ids.items()]
        [late] = appended(store, 2, [(False, b"late")])
        again = DecidedTrace(trace_id(2), 2, False, "e", frozenset({b"1" * 8}), [*ids[2], late], 9)
        store.commit(WriteSet(traces=[again])).result()
        store.kept._move([(*each, packed_contents(found.values())) for each in due], 5.0).result()
        store.kept._move([(*each, None) for each in due], 5.0).result()
        assert readable(store) == [1]
        assert store.reads.held(trace_id(1)) == ("d", ())
        assert store.reads.held(trace_id(2)) == ("e", (*ids[2], late))
        assert store.reads.contents(trace_id(2)) == [(False, b"spans"), (False, b"late")]

    def test_ids_of_moved_chunks_are_not_reused_after_a_restart(self, store: Store) -> None:
        [newest] = decide(store, 1)
        keep(store)
        store.close()
        again = Store(store.path, "off")
        assert again.next_chunk_id() == newest + 1
        again.close()


class TestForgetting:
    def filled(self, store: Store, number: int = 4) -> int:
        """Return one trace's size."""
        for each in range(1, number + 1):
            decide(store, each, bytes([each]) * 50_000)
        keep(store)
        return kept_bytes(store) // number

    def forget(self, store: Store, most: int, later: float = 0.0, **options: int) -> int:
        now = store.clock.calendar() + WINDOW + 1 + later
        return int(store.kept.forget(RETENTION, most, now, **options).result())

    @pytest.mark.parametrize(("rows", "left"), [(5, [1, 2, 3, 4]), (4, [1, 2, 3, 4]), (3, [2, 3, 4]), (0, [])])
    def test_the_oldest_kept_traces_are_deleted_if_space_is_short(
        self, store: Store, rows: int, left: list[int]
    ) -> None:
        each = self.filled(store)
        assert self.forget(store, rows * each) == 4 - len(left)
        assert readable(store) == left

    @pytest.mark.parametrize(("later", "gone"), [(RETENTION - 5, 0), (RETENTION + 5, 4)])
    def test_all_kept_traces_are_deleted_after_the_retention(self, store: Store, later: float, gone: int) -> None:
        self.filled(store)
        assert self.forget(store, 1 << 30, later) == gone

    def test_a_kept_trace_is_deleted_only_after_its_retention(self, store: Store) -> None:
        self.filled(store, 1)
        with open_database(store.path / FILE_NAME) as connection:
            connection.execute("UPDATE kept SET kept_at = 100.0")
        gone = [store.kept.forget(RETENTION, 1 << 30, 100.0 + RETENTION + late).result() for late in (0.0, 0.5)]
        assert gone == [0, 1]

    def test_each_call_deletes_at_most_the_limit(self, store: Store) -> None:
        self.filled(store)
        assert [self.forget(store, 0, limit=3), readable(store)] == [3, [4]]
        assert [self.forget(store, 0, limit=3), self.forget(store, 0, limit=3)] == [1, 0]


def stored_spans(store: Store, id_: bytes) -> list[bytes]:
    """Return all readable spans of a trace."""
    return [data for each in stored_traces(store.reads.connection(), id_.hex()) for _, data in each.parts]


class TestFile:
    def test_the_format_of_kept_contents_matches_older_stores(self) -> None:
        data = packed_contents([(False, b"ab"), (True, b"c")])
        assert zstandard.ZstdDecompressor().decompress(data) == b"\0\2\0\0\0ab\1\1\0\0\0c"
        assert zstandard.get_frame_parameters(data).has_checksum

    def test_stored_traces_reads_chunks_and_kept_contents(self, store: Store) -> None:
        large = bytes(range(256)) * 40
        appended(store, 1, [(False, large), (True, b"late")])
        decide(store, 2, b"two", large)
        decide(store, 3, b"three", large)
        keep(store, wanted={trace_id(2)})
        decide(store, 4)
        assert readable(store) == [2], "trace 3 was decided second"
        for number, parts in ((1, [large, b"late"]), (2, [b"two", large]), (3, [b"three", large])):
            [found] = stored_traces(store.reads.connection(), trace_id(number).hex())
            assert [data for _, data in found.parts] == parts
        assert [*stored_traces(store.reads.connection(), trace_id(9).hex())] == []

    def test_a_trace_moved_between_two_reads_is_found(self, store: Store) -> None:
        decide(store, 1, b"spans")
        reader = _MovedMeanwhile(store.reads.connection(), lambda: keep(store))
        assert chunks.contents(reader, trace_id(1)) == [(False, b"spans")]  # type: ignore[arg-type]
        other = _MovedMeanwhile(store.reads.connection(), lambda: None)
        decide(store, 2, b"spans")
        ids = store.reads.held(trace_id(2))
        assert ids is not None
        gone = _MovedMeanwhile(store.reads.connection(), lambda: store.discard(ids[1]).result())
        assert chunks.contents(gone, trace_id(2)) == []  # type: ignore[arg-type]
        assert chunks.contents(other, trace_id(3)) == []  # type: ignore[arg-type]


class TestAllTraces:
    """Full reads beside a running collector."""

    def read(self, store: Store) -> list[chunks.StoredTrace]:
        with closing(connect(store.path / FILE_NAME, "off", read_only=True)) as connection:
            found = [*chunks.stored_traces(connection)]
            assert chunks.count_traces(connection) == len(found)
            assert not connection.in_transaction
            return found

    def test_an_empty_store_has_no_traces(self, store: Store) -> None:
        assert self.read(store) == []

    def test_kept_traces_come_first_and_the_rest_by_start(self, store: Store) -> None:
        large = bytes(range(256)) * 40
        decide(store, 1, b"one", large)
        decide(store, 2, b"two")
        keep(store)
        for number, start in ((3, 30), (4, 10), (5, 20)):
            chunk = Chunk(store.next_chunk_id(), trace_id(number), False, 1, start, b"%d" % number)
            store.append([chunk]).result()
        decide(store, 6, b"six", large)
        appended(store, 3, [(True, b"logs")])
        assert [(int.from_bytes(each.trace_id, "big"), each.parts, each.damage) for each in self.read(store)] == [
            (1, [(False, b"one"), (False, large)], ""),
            (2, [(False, b"two")], ""),
            (3, [(False, b"3"), (True, b"logs")], ""),
            (6, [(False, b"six"), (False, large)], ""),
            (4, [(False, b"4")], ""),
            (5, [(False, b"5")], ""),
        ]

    @pytest.mark.parametrize("damage", [b"", b"no frame", 7, "text", zstandard.compress(b"\0\1")])
    def test_a_damaged_trace_is_marked_and_the_others_are_read(self, store: Store, damage: object) -> None:
        for number in (1, 2):
            decide(store, number)
        keep(store)
        for number in (3, 4):
            appended(store, number, [(False, bytes(9000))])
        with open_database(store.path / FILE_NAME) as connection:
            connection.execute("UPDATE kept SET data = ? WHERE no = 1", (damage,))
            connection.execute("UPDATE chunks SET data = ? WHERE trace_id = ?", (damage, trace_id(3)))
        found = self.read(store)
        assert [(each.trace_id, len(each.parts)) for each in found] == [
            (trace_id(number), int(number in (2, 4))) for number in (1, 2, 3, 4)
        ]
        assert [each.damage != "" for each in found] == [True, False, True, False]

    def test_a_full_read_shows_the_store_as_of_its_first_trace(self, store: Store) -> None:
        decide(store, 1)
        keep(store)
        appended(store, 2, [(False, b"open")])
        with closing(connect(store.path / FILE_NAME, "off", read_only=True)) as connection:
            reading = chunks.stored_traces(connection)
            first = next(reading)
            appended(store, 3, [(False, b"later")])
            assert [each.trace_id for each in (first, *reading)] == [trace_id(1), trace_id(2)]


class _MovedMeanwhile:
    """A connection with changes between reads."""

    def __init__(self, reader: sqlite3.Connection, change: object) -> None:
        self._reader, self._change = reader, change

    def execute(self, statement: str, values: object = ()) -> object:
        cursor = self._reader.execute(statement, values)  # type: ignore[arg-type]
        if "chunks FROM traces" not in statement:
            return cursor
        rows = cursor.fetchall()
        self._change()  # type: ignore[operator]
        return self._reader.execute("SELECT ?", rows[0]) if rows else self._reader.execute("SELECT 1 WHERE 0")
