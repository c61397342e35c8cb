"""A store that was damaged between two lives: it is complete, or the log says what is missing. Never is it silent."""

from __future__ import annotations

import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pandaeval_collector.store import Chunk, Store
from pandaeval_collector.store.commits import ahead, lacking
from pandaeval_collector.store.connection import PAGE_BYTES
from support.database import open_database

FILE, LOG, INDEX, MARK = "pandaeval.db", "pandaeval.db-wal", "pandaeval.db-shm", "pandaeval.mark"
Contents = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Killed:
    """What processes that were killed left behind, at three times of one store, with what each had acknowledged.
    ``early``: all of it in the log. ``middle``: copied into the file, and still in the log. ``late``: a newer log."""

    folder: Path
    acknowledged: dict[str, Contents]

    def at(self, state: str) -> Path:
        return self.folder / state


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    store, held, acknowledged = Store(folder / "data"), Contents(), dict[str, Contents]()
    for state in ("early", "middle", "late"):
        for _ in range(30):
            content = os.urandom(5000)
            chunk = Chunk(store.next_chunk_id(), os.urandom(16), False, 1, 1, content)
            store.append([chunk]).result(10)
            held[chunk.id] = content
        store.put("state", state).result(10)
        if state == "middle":
            store.checkpoint()
        shutil.copytree(folder / "data", folder / state)
        acknowledged[state] = dict(held)
    store.close()
    return Killed(folder, acknowledged)


def cut(name: str, part: float, more: int = 0) -> Callable[[Path, Killed], None]:
    def damage(data: Path, _: Killed) -> None:
        os.truncate(data / name, max(0, int((data / name).stat().st_size * part) - more))

    return damage


def removed(*names: str) -> Callable[[Path, Killed], None]:
    def damage(data: Path, _: Killed) -> None:
        for name in names:
            (data / name).unlink()

    return damage


def flipped(name: str, seed: int, bits: int = 3) -> Callable[[Path, Killed], None]:
    def damage(data: Path, _: Killed) -> None:
        content, chance = bytearray((data / name).read_bytes()), random.Random(seed)
        for _ in range(bits):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (data / name).write_bytes(content)

    return damage


def zeros(name: str, page: int) -> Callable[[Path, Killed], None]:
    def damage(data: Path, _: Killed) -> None:
        with (data / name).open("r+b") as content:
            content.seek(page * PAGE_BYTES)
            content.write(bytes(PAGE_BYTES))

    return damage


def older(state: str, *names: str) -> Callable[[Path, Killed], None]:
    """Copies of another time in the place of these files; what that time did not have is removed."""

    def damage(data: Path, killed: Killed) -> None:
        for name in names:
            shutil.copy(killed.at(state) / name, data / name)

    return damage


DAMAGES = {
    "nothing": lambda *_: None,
    "log emptied": cut(LOG, 0),
    "log without its last frame": cut(LOG, 1, PAGE_BYTES + 24),
    "log without half of its last frame": cut(LOG, 1, PAGE_BYTES // 2),
    "log cut in half": cut(LOG, 0.5),
    "nothing of the log but its head": lambda data, _: os.truncate(data / LOG, 32),
    "log removed": removed(LOG),
    "log and index removed": removed(LOG, INDEX),
    "index removed": removed(INDEX),
    "index emptied": cut(INDEX, 0),
    "noise in the index": flipped(INDEX, 1, 50),
    "file emptied": cut(FILE, 0),
    "file cut in half": cut(FILE, 0.5),
    "file without its last page": cut(FILE, 1, PAGE_BYTES),
    "file without its last bytes": cut(FILE, 1, 100),
    "file removed": removed(FILE),
    "file, log and index removed": removed(FILE, LOG, INDEX),
    "page 0 of the file zeroed": zeros(FILE, 0),
    "page 2 of the file zeroed": zeros(FILE, 2),
    "older file": older("early", FILE),
    "older file with its log": older("early", FILE, LOG, INDEX),
    "older log": older("early", LOG, INDEX),
    "less old file": older("middle", FILE),
    "less old log": older("middle", LOG, INDEX),
    "newer file": older("late", FILE),
    "newer log": older("late", LOG, INDEX),
    **{f"{bits} bits of the log, {seed}": flipped(LOG, seed, bits) for seed in range(4) for bits in (1, 5)},
    **{f"{bits} bits of the file, {seed}": flipped(FILE, seed, bits) for seed in range(4) for bits in (1, 20)},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("state", ["early", "middle", "late"])
def test_what_is_missing_is_said(
    killed: Killed,
    tmp_path: Path,
    state: str,
    damage: Callable[[Path, Killed], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.at(state), data)
    damage(data, killed)
    with caplog.at_level(logging.WARNING):
        store = Store(data)
        found = {chunk.id: chunk.data for chunk in store.reads.open_chunks()}
    lacking = {id_ for id_, content in killed.acknowledged[state].items() if found.get(id_) != content}
    if lacking:
        said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert any("missing" in each or "put aside" in each or "cannot be read" in each for each in said), said
        if not lacking & found.keys():
            assert store.missing or store.was_damaged
    elif damage is DAMAGES["nothing"]:
        assert caplog.text == ""
    chunk = Chunk(store.next_chunk_id(), bytes(16), False, 1, 1, b"goes on")
    store.append([chunk]).result(10)
    store.close()
    again = Store(data)  # what was said is said once
    assert not again.missing
    assert chunk.id in {each.id for each in again.reads.open_chunks()}
    again.close()


@pytest.mark.parametrize("name", ["log removed", "file removed", "older file with its log"])
def test_these_do_lose_something(killed: Killed, tmp_path: Path, name: str) -> None:
    """So that the test above tries what it says."""
    shutil.copytree(killed.at("late"), tmp_path / "data")
    DAMAGES[name](tmp_path / "data", killed)
    store = Store(tmp_path / "data")
    assert store.missing
    assert len(list(store.reads.open_chunks())) < len(killed.acknowledged["late"])
    store.close()


def test_it_says_what_is_missing_and_up_to_when(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.at("late"), data)
    removed(LOG, INDEX)(data, killed)
    Store(data).close()
    assert "acknowledged data is missing" in caplog.text
    assert "the last 30 parts of traces and " in caplog.text


def test_nothing_is_deleted_by_a_start(killed: Killed, tmp_path: Path) -> None:
    """SQLite deletes the log of an empty file."""
    data = tmp_path / "data"
    shutil.copytree(killed.at("early"), data)
    log = (data / LOG).read_bytes()
    cut(FILE, 0)(data, killed)
    Store(data).close()
    [aside] = data.glob(f"{LOG}.aside-*")
    assert aside.read_bytes() == log


def test_a_file_that_ends_within_a_page_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite would go on with zeros."""
    store = Store(tmp_path)
    store.append([Chunk(store.next_chunk_id(), bytes(16), False, 1, 1, b"x" * 4000)]).result(10)
    store.close()
    os.truncate(tmp_path / FILE, (tmp_path / FILE).stat().st_size - 100)
    again = Store(tmp_path)
    assert again.was_damaged
    assert "ends within a page" in caplog.text
    again.close()


def test_a_store_of_an_older_version_lacks_nothing(tmp_path: Path) -> None:
    """It has neither numbers nor an id, and no note beside it."""
    data = tmp_path / "data"
    store = Store(data)
    store.close()
    (data / MARK).unlink()
    with open_database(data / FILE) as database:
        database.execute("DELETE FROM meta WHERE key = 'store_id'")
        database.execute("PRAGMA application_id = 0")
    for _ in range(2):
        store = Store(data)
        assert not store.missing
        store.close()


def test_without_the_note_a_start_says_that_it_cannot_tell(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.at("early"), data)
    (data / MARK).write_bytes(b"something else that is long enough to be a note")
    store = Store(data)
    assert not store.missing
    assert "no note of the last commit" in caplog.text
    store.close()


def test_a_note_that_was_removed_is_put_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([Chunk(store.next_chunk_id(), bytes(16), False, 1, 1, b"spans")]).result(10)
    (tmp_path / MARK).unlink()
    store.look()
    store.close()
    os.truncate(tmp_path / FILE, 0)
    again = Store(tmp_path)
    assert "took 1 parts of traces" in again.missing
    again.close()


@pytest.mark.parametrize(
    ("number", "other", "by"), [(5, 3, 2), (3, 5, -2), (7, 7, 0), (1, 2**32 - 1, 2), (2**32 - 1, 1, -2)]
)
def test_numbers_of_commits_begin_again_after_32_bits(number: int, other: int, by: int) -> None:
    assert ahead(number, other) == by


def test_a_store_that_is_ahead_of_its_note_lacks_nothing() -> None:
    """As after a power cut, which the note may not survive."""
    assert lacking((b"s", 9, 90), (b"s", 7, 70, 0.0)) == ""
    assert "0 parts of traces and 2 numbered commits" in lacking((b"s", 7, 90), (b"s", 9, 70, 0.0))
    assert "20 parts of traces and 0 numbered commits" in lacking((b"s", 7, 70), (b"s", 7, 90, 0.0))


def test_chunks_that_were_deleted_are_not_missed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ids = [store.next_chunk_id() for _ in range(3)]
    store.append([Chunk(id_, bytes(16), False, 1, 1, b"spans") for id_ in ids]).result(10)
    store.discard(ids[1:]).result(10)
    store.close()
    again = Store(tmp_path)
    assert not again.missing
    assert again.next_chunk_id() == ids[-1] + 1
    again.close()


def test_chunks_that_could_not_be_stored_are_not_missed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    id_ = store.next_chunk_id()
    store.append([Chunk(id_, bytes(16), False, 1, 1, b"spans")]).result(10)
    twice = [Chunk(number, bytes(16), False, 1, 1, b"spans") for number in (id_ + 1, id_)]
    with pytest.raises(sqlite3.IntegrityError):
        store.append(twice).result(10)
    store.put("a", "b").result(10)
    store.close()
    again = Store(tmp_path)
    assert not again.missing
    again.close()
