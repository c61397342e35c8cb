"""Stored chunks: layout, restart, limits."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from pandaeval_collector.store import Chunk, Store, StoreFullError, StoreReader
from pandaeval_collector.store.chunks import compress, decompress, pack
from pandaeval_collector.store.rows import row_sum
from pandaeval_lab.replay.trace_files import traces_by_start

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off", 10 * MIB)
    yield opened
    opened.close()


class TestPacking:
    def test_contents_over_four_kibibytes_are_compressed(self) -> None:
        contents = [b"a" * 4096, b"b" * 4097, b"", b"c" * 9000, b"d"]
        packed = pack(contents)
        assert [compressed for compressed, _ in packed] == [False, True, False, True, False]
        assert [decompress(data) if compressed else data for compressed, data in packed] == contents
        assert [len(data) < 100 for _, data in packed] == [False, True, True, True, True]
        assert pack([]) == pack([b""])[1:] == []

    def test_compressed_frames_have_a_checksum(self) -> None:
        (_, packed), made = pack([bytes(5000)])[0], compress(b"of any size")
        for data in (packed, made):
            assert zstandard.get_frame_parameters(data).has_checksum
        assert decompress(made) == b"of any size"

    def test_row_checksum_matches_older_stores_and_covers_each_field(self) -> None:
        fields = [0, 1, 7, b"trace", 3, 50, "a session", 1]
        written = b"[0, 1, 7, b'trace', 3, 50, 'a session', 1]"
        assert row_sum(fields, b"spans") == zlib.crc32(b"spans", zlib.crc32(written))
        others = {row_sum([*fields[:at], 9, *fields[at + 1 :]], b"spans") for at in range(len(fields))}
        others |= {row_sum(fields, b"span"), row_sum([], b"spans"), row_sum(fields, b"")}
        assert len(others | {row_sum(fields, b"spans")}) == len(fields) + 4


def test_a_restart_reads_open_chunks_with_all_fields(store: Store) -> None:
    chunks = [
        Chunk(store.next_chunk_id(), b"1" * 16, False, 3, 50, b"spans"),
        Chunk(store.next_chunk_id(), b"2" * 16, True, 2, 0, bytes(9000), "chat"),
        Chunk(store.next_chunk_id(), b"1" * 16, False, 1, 40, b"", "chat", True),
    ]
    store.append(chunks[1:]).result()
    store.append(chunks[:1]).result()
    store.close()
    again = Store(store.path, "off")
    assert [*again.reads.open_chunks()] == chunks
    assert again.reads.chunks([1, 2, 3]) == {chunk.id: (chunk.logs, chunk.data) for chunk in chunks}
    assert again.next_chunk_id() == 4
    again.close()


def test_a_store_reader_reads_chunks_but_cannot_write(store: Store) -> None:
    chunk = Chunk(store.next_chunk_id(), b"1" * 16, True, 1, 1, b"spans")
    store.append([chunk]).result()
    with closing(StoreReader(store.path)) as reader:
        assert reader.chunks([chunk.id]) == {chunk.id: (True, b"spans")}
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.connection().execute("DELETE FROM chunks")


def test_an_append_without_chunks_uses_no_chunk_id(store: Store) -> None:
    store.append([], ["a session"]).result()
    assert store.next_chunk_id() == 1


def test_traces_are_ordered_by_start_with_all_their_chunks(store: Store) -> None:
    rows = [(1, False, 50, b"12345", 2), (2, True, 0, b"1", 1), (3, False, 20, b"", 1), (1, True, 0, b"12", 3)]
    rows += [(1, False, 60, b"1", 1)] * 10 + [(0, False, 50, b"1", 1)]
    chunks = [
        Chunk(store.next_chunk_id(), bytes([number]), logs, items, start, data)
        for number, logs, start, data, items in rows
    ]
    store.append(chunks).result()
    assert [*traces_by_start(store.reads)] == [
        (b"\2", [2], 1, 1),
        (b"\3", [3], 0, 1),
        (b"\0", [15], 1, 1),
        (b"\1", [1, 4, *range(5, 15)], 17, 15),
    ]


class TestFull:
    @pytest.mark.parametrize(
        ("remembered", "used", "refused"),
        [(9, 20, False), (10, 9, False), (20, 9, False), (10, 10, True), (11, 10, True), (10, 11, True)],
    )
    def test_the_store_measures_its_size_again_before_it_rejects_spans(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, remembered: int, used: int, refused: bool
    ) -> None:
        sizes = iter([remembered * MIB, used * MIB])
        monkeypatch.setattr(store.reads, "used_bytes", lambda: next(sizes))
        assert store.size_bytes() == remembered * MIB
        chunk = Chunk(store.next_chunk_id(), b"1" * 16, False, 1, 1, b"spans")
        if refused:
            with pytest.raises(
                StoreFullError, match=rf"holds {used}\.\d MiB, and store.max_bytes is 10\.0 MiB: raise it"
            ):
                store.append([chunk])
        else:
            store.append([chunk]).result()
        assert [*store.reads.open_chunks()] == ([] if refused else [chunk])

    def test_the_size_is_measured_again_only_when_the_estimate_reaches_the_limit(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[int] = []
        monkeypatch.setattr(store.reads, "used_bytes", lambda: looked.append(1) or 0)
        monkeypatch.setattr(store, "max_bytes", 20_000)
        store.size_bytes()
        counts = []
        for _ in range(5):
            store.append([Chunk(store.next_chunk_id(), b"1" * 16, False, 1, 1, bytes(4000)) for _ in range(2)]).result()
            counts.append(len(looked))
        assert counts == [1, 1, 1, 2, 2]
