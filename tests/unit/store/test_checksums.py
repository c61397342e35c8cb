"""Checksums detect changed chunks."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import Chunk, Store, StoreReader
from pandaeval_collector.store.chunks import DamagedChunkError, stored_traces
from support.database import open_database

T1, T2 = b"1" * 16, b"2" * 16
SMALL, LARGE = random.Random(1).randbytes(3000), bytes(range(256)) * 64
DAMAGE = {
    "a bit": "UPDATE chunks SET data = CAST(substr(data, 1, 9) || x'ee' || substr(data, 11) AS BLOB) WHERE id = 2",
    "cut": "UPDATE chunks SET data = substr(data, 1, length(data) - 1) WHERE id = 2",
    "empty": "UPDATE chunks SET data = x'' WHERE id = 2",
    "a number": "UPDATE chunks SET data = 7 WHERE id = 2",
    "a text": "UPDATE chunks SET data = 'text' WHERE id = 2",
    "of another trace": "UPDATE chunks SET trace_id = x'33' WHERE id = 2",
    "of another signal": "UPDATE chunks SET logs = NOT logs WHERE id = 2",
    "of another session": "UPDATE chunks SET session = 'other' WHERE id = 2",
    "complete": "UPDATE chunks SET closes = NOT closes WHERE id = 2",
    "more items": "UPDATE chunks SET items = items + 1 WHERE id = 2",
    "another start": "UPDATE chunks SET start_ns = start_ns + 1 WHERE id = 2",
    "not packed": "UPDATE chunks SET packed = NOT packed WHERE id = 2",
    "the checksum": "UPDATE chunks SET checksum = checksum + 1 WHERE id = 2",
    "another row": "UPDATE chunks SET (data, checksum) = (SELECT data, checksum FROM chunks WHERE id = 1)",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def append(store: Store, data: bytes, session: str = "s") -> int:
    chunk = Chunk(store.next_chunk_id(), T1, False, 3, 20, data, session, True)
    store.append([chunk]).result()
    return chunk.id


def change(store: Store, statement: str) -> None:
    with open_database(store.path / "pandaeval.db") as connection:
        connection.execute(statement)


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["as it came", "compressed"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=[*DAMAGE])
def test_every_reader_reports_a_changed_chunk(
    store: Store, data: bytes, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = append(store, SMALL + b"1"), append(store, data, "sitzung ü\U0001f600")
    reader = StoreReader(store.path)
    try:
        assert store.reads.chunks([first, second])[second] == reader.chunks([second])[second] == (False, data)
        assert [each.data for each in store.reads.open_chunks()] == [SMALL + b"1", data]
        change(store, damage)
        for read in (store.reads.chunks, reader.chunks):
            with pytest.raises(DamagedChunkError, match=f"chunk {second} "):
                read([first, second])
    finally:
        reader.close()
    assert [each.data for each in store.reads.open_chunks()] == [SMALL + b"1", b""], "the start does not fail"
    assert f"chunk {second} " in caplog.text
    assert store.reads.chunks([first])[first] == (False, SMALL + b"1")


def test_stored_traces_marks_a_damaged_trace(store: Store) -> None:
    append(store, SMALL)
    append(store, SMALL)
    [whole] = stored_traces(store.reads.connection(), T1.hex()[:8])
    assert whole.parts == [(False, SMALL), (False, SMALL)]
    change(store, DAMAGE["a bit"])
    [damaged] = stored_traces(store.reads.connection(), T1.hex())
    assert damaged.damage
    assert [*stored_traces(store.reads.connection(), T2.hex())] == []


def test_a_flipped_bit_in_chunk_data_is_detected(store: Store) -> None:
    id_, draw = append(store, SMALL), random.Random(2)
    for _ in range(20):
        flipped = bytearray(SMALL)
        flipped[draw.randrange(len(SMALL))] ^= 1 << draw.randrange(8)
        with open_database(store.path / "pandaeval.db") as connection:
            connection.execute("UPDATE chunks SET data = ?", (bytes(flipped),))
        with pytest.raises(DamagedChunkError):
            store.reads.chunks([id_])


def test_chunk_data_stored_as_text_is_read_but_an_invalid_session_is_damage(store: Store) -> None:
    """A flipped bit in the row header can turn bytes into text."""
    ids = [append(store, SMALL), append(store, LARGE)]
    change(store, "UPDATE chunks SET data = CAST(data AS TEXT)")
    with contextlib.closing(StoreReader(store.path)) as reader:
        assert store.reads.chunks(ids) == reader.chunks(ids) == {ids[0]: (False, SMALL), ids[1]: (False, LARGE)}
    assert [each.data for each in store.reads.open_chunks()] == [SMALL, LARGE]
    change(store, "UPDATE chunks SET session = CAST(x'ff' AS TEXT)")
    with pytest.raises(DamagedChunkError):
        store.reads.chunks(ids)


def test_a_flipped_bit_in_the_file_never_changes_chunk_contents(tmp_path: Path) -> None:
    """A read returns the original contents or raises an error."""
    store, draw = Store(tmp_path / "data", "off"), random.Random(3)
    contents = store.reads.chunks([append(store, draw.randbytes(draw.choice([40, 900, 3000]))) for _ in range(40)])
    store.close()
    whole, named = (tmp_path / "data" / "pandaeval.db").read_bytes(), 0
    for _ in range(120):
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        (tmp_path / "pandaeval.db").write_bytes(flipped)
        try:
            with contextlib.closing(StoreReader(tmp_path)) as reader:
                assert reader.chunks(contents) == contents
        except (DamagedChunkError, LookupError, sqlite3.Error):
            named += 1
    assert named


def test_a_store_reader_cannot_write(store: Store) -> None:
    append(store, SMALL)
    with (
        contextlib.closing(StoreReader(store.path)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.connection().execute("DELETE FROM chunks")
    assert [each.data for each in store.reads.open_chunks()] == [SMALL]
