"""A store whose files are taken away while it is open: nothing is said to be stored in a file that nobody will find,
and what was stored before is saved."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pandaeval_collector.store.directory as rescue_module
from pandaeval_collector.store import Chunk, Store, StoreBusyError, StoreGoneError
from support.stored import chunk_ids

TRACE = bytes(range(16))
Free = namedtuple("Free", "free")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(data: Path) -> Iterator[Store]:
    made = Store(data)
    yield made
    made.close()


def put(store: Store, content: bytes = b"spans") -> int:
    chunk = Chunk(store.next_chunk_id(), TRACE, False, 1, 1, content)
    store.append([chunk]).result(10)
    return chunk.id


def removed(*names: str) -> Callable[[Path], None]:
    def take(data: Path) -> None:
        for name in names:
            (data / name).unlink()

    return take


def replaced(data: Path) -> None:
    shutil.copy(data / "pandaeval.db", data / "copy")
    (data / "copy").replace(data / "pandaeval.db")


def emptied(data: Path) -> None:
    for file in data.iterdir():
        file.unlink()


TAKEN = [
    pytest.param(removed("pandaeval.db"), id="file"),
    pytest.param(removed("pandaeval.db-wal"), id="log"),
    pytest.param(removed("pandaeval.db", "pandaeval.db-wal", "pandaeval.db-shm"), id="file and log"),
    pytest.param(emptied, id="all files"),
    pytest.param(shutil.rmtree, id="directory"),
]


@pytest.mark.parametrize("take", TAKEN)
def test_what_is_committed_to_a_file_that_is_gone_is_not_acknowledged(
    store: Store, data: Path, take: Callable[[Path], None]
) -> None:
    put(store)
    take(data)
    with pytest.raises(StoreGoneError, match="moved, removed or replaced"):
        put(store)
    with pytest.raises(StoreGoneError):  # and nothing later is
        store.require()


@pytest.mark.parametrize("take", TAKEN)
def test_what_was_acknowledged_is_there_at_the_next_start(
    store: Store, data: Path, take: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ids = [put(store, os.urandom(9000)) for _ in range(20)]
    take(data)
    with pytest.raises(StoreGoneError):
        put(store)
    store.rescue()
    assert "nothing is lost" in caplog.text
    store.close()
    assert set(ids) <= chunk_ids(data)
    again = Store(data)
    assert set(ids) <= {chunk.id for chunk in again.reads.open_chunks()}
    assert again.missing == ""
    assert (data / "pandaeval.db").stat().st_mode & 0o777 == 0o600
    again.close()


def test_closing_saves_what_nobody_looked_for(store: Store, data: Path) -> None:
    ids = {put(store), put(store)}
    shutil.rmtree(data)
    store.close()
    assert chunk_ids(data) == ids


def test_an_index_of_the_log_that_is_gone_shows_at_a_look(store: Store, data: Path) -> None:
    """Nothing is lost by it, but other processes would not see our locks any more."""
    ids = {put(store)}
    (data / "pandaeval.db-shm").unlink()
    assert "pandaeval.db-shm" in store.look()
    store.close()
    assert chunk_ids(data) == ids


def test_a_file_that_took_its_place_is_not_overwritten(
    store: Store, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(store)
    (data / "pandaeval.db").unlink()
    (data / "pandaeval.db").write_bytes(b"somebody else's")
    last = Chunk(store.next_chunk_id(), TRACE, False, 1, 1, b"more")
    with pytest.raises(StoreGoneError):
        store.append([last]).result(10)
    store.rescue()
    assert "could not be put at its path (File exists)" in caplog.text
    assert (data / "pandaeval.db").read_bytes() == b"somebody else's"
    [saved] = data.glob("pandaeval.db.rescued-*")
    store.close()
    saved.replace(data / "pandaeval.db")
    (data / "pandaeval.db-wal").unlink(missing_ok=True)
    assert chunk_ids(data) == {1, last.id}


def test_a_copy_in_its_place_is_another_file(store: Store, data: Path) -> None:
    put(store)
    replaced(data)
    with pytest.raises(StoreGoneError):
        put(store)


@pytest.mark.parametrize("what", ["data", "data/pandaeval.db"])
def test_a_store_that_was_moved_is_whole_where_it_is(
    store: Store, data: Path, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids = {put(store), put(store)}
    (tmp_path / what).rename(tmp_path / "moved")
    assert "moved" in store.look()
    with pytest.raises(StoreGoneError):
        put(store)
    store.rescue()
    assert str(tmp_path / "moved") in caplog.text
    assert not (data / "pandaeval.db").exists()
    store.close()
    if what == "data":
        assert ids <= chunk_ids(tmp_path / "moved")
    else:
        shutil.rmtree(data)
        data.mkdir()
        (tmp_path / "moved").rename(data / "pandaeval.db")
        assert ids <= chunk_ids(data)


def test_without_room_it_is_tried_again(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {put(store)}
    (data / "pandaeval.db").unlink()
    assert store.look()
    with monkeypatch.context() as full:
        full.setattr(rescue_module.shutil, "disk_usage", lambda _: Free(0))
        with pytest.raises(OSError, match="have to be saved"):
            store.rescue()
    assert not list(data.glob("*rescued*"))
    store.rescue()
    store.close()
    assert chunk_ids(data) == ids


def test_no_reader_makes_a_new_file_in_its_place(store: Store, data: Path) -> None:
    (data / "pandaeval.db").unlink()
    with ThreadPoolExecutor(1) as other, pytest.raises(sqlite3.OperationalError, match="unable to open"):
        other.submit(store.reads.newest_seq).result(10)
    assert not (data / "pandaeval.db").exists()


def test_without_its_lock_file_the_directory_still_has_one_owner(
    store: Store, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "lock").unlink()
    with pytest.raises(StoreBusyError):
        Store(data)
    assert store.look() == ""
    assert (data / "lock").exists()
    assert "it is put back" in caplog.text
    put(store)


def test_a_lock_file_that_another_one_holds_ends_it(store: Store, data: Path) -> None:
    (data / "lock").unlink()
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another collector" in store.look()
    with pytest.raises(StoreGoneError):
        put(store)


def test_all_is_well_while_all_is_in_its_place(store: Store) -> None:
    for _ in range(3):
        put(store)
        assert store.look() == ""
    store.rescue()
    put(store)
