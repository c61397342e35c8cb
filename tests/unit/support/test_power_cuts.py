"""A simulated power cut loses only unsynced data."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from os import environ
from pathlib import Path

import pytest

from support.database import open_database
from support.power_cuts import Disk, Step, compiled, logged, steps

_WRITER = """
import os, sqlite3, sys, time
folder, level = sys.argv[1:]
os.close(os.open(folder + "/s.db", os.O_CREAT | os.O_RDWR))
os.fsync(os.open(folder, os.O_RDONLY))
store = sqlite3.connect(folder + "/s.db", isolation_level=None)
store.execute("PRAGMA journal_mode = WAL")
store.execute(f"PRAGMA synchronous = {level}")
store.execute("PRAGMA wal_autocheckpoint = 10")
store.execute("CREATE TABLE t (n, filling)")
for n in range(25):
    store.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 300))
    print(time.monotonic(), flush=True)
"""


def _step(kind: str, path: str, data: bytes = b"", offset: int = 0) -> Step:
    return Step(0.0, kind, path, offset, data)


def _outcomes(*done: Step) -> set[tuple[tuple[str, bytes], ...]]:
    disk = Disk()
    for step in done:
        disk.do(step)
    return {tuple(sorted(disk.after_a_cut(random.Random(seed)).items())) for seed in range(200)}


def test_synced_data_survives_every_power_cut() -> None:
    made = _step("C", "/d/a"), _step("W", "/d/a", b"old"), _step("S", "/d/a"), _step("S", "/d")
    assert _outcomes(*made) == {(("/d/a", b"old"),)}


def test_unsynced_changes_may_survive_or_not() -> None:
    made = _step("C", "/d/a"), _step("W", "/d/a", b"old"), _step("S", "/d/a"), _step("S", "/d")
    assert _outcomes(*made, _step("W", "/d/a", b"new")) == {(("/d/a", b"old"),), (("/d/a", b"new"),)}
    assert _outcomes(*made, _step("U", "/d/a")) == {(("/d/a", b"old"),), ()}
    assert _outcomes(*made, _step("R", "/d/a", b"/d/b")) >= {(("/d/a", b"old"),), (("/d/b", b"old"),)}


def test_an_unsynced_write_can_be_torn_between_sectors() -> None:
    made = _step("C", "/d/a"), _step("S", "/d"), _step("W", "/d/a", b"1" * 512 + b"2" * 512)
    assert (("/d/a", bytes(512) + b"2" * 512),) in _outcomes(*made)


def test_a_file_can_be_missing_if_its_folder_was_not_synced() -> None:
    assert () in _outcomes(_step("C", "/d/a"), _step("W", "/d/a", b"x"), _step("S", "/d/a"))


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
@pytest.mark.parametrize(("level", "may_lose"), [("FULL", False), ("NORMAL", True)])
def test_a_database_loses_rows_only_if_synchronous_is_normal(tmp_path: Path, level: str, may_lose: bool) -> None:
    folder, log = tmp_path / "data", tmp_path / "disk.rec"
    folder.mkdir()
    environment = environ | logged(compiled(tmp_path), log, folder)
    command = [sys.executable, "-c", _WRITER, str(folder), level]
    completed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    moments = list(map(float, completed.stdout.split()))
    done, disk, chance, lossy = list(steps(log)), Disk(), random.Random(1), 0
    for number, step in enumerate(done):
        disk.do(step)
        until = done[number + 1].at if number + 1 < len(done) else time.monotonic()
        owed = sum(moment < until for moment in moments)
        if owed and number % 3 == 0:
            cut = tmp_path / "cut"
            cut.mkdir()
            for path, content in disk.after_a_cut(chance).items():
                (cut / Path(path).name).write_bytes(content)
            with open_database(cut / "s.db") as database:
                is_there = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
                stored = database.execute("SELECT count(*) FROM t").fetchone()[0] if is_there else 0
            lossy += stored < owed
            shutil.rmtree(cut)
    assert bool(lossy) == may_lose
