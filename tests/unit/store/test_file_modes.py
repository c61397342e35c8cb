"""Files of a data directory are private."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pandaeval_collector.store import Store
from pandaeval_collector.store.connection import FILE_NAME


def modes(folder: Path) -> dict[str, int]:
    return {file.name.partition("-2")[0]: file.stat().st_mode & 0o777 for file in folder.iterdir()}


def open_and_write(folder: Path) -> Store:
    store = Store(folder, "off")
    store.put("key", "value").result()
    return store


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o660, 0o660), (0o600, 0o600)])
def test_a_restored_backup_is_closed_to_other_users(tmp_path: Path, before: int, after: int) -> None:
    Store(tmp_path / "first", "off").close()
    folder = tmp_path / "second"
    folder.mkdir()
    with (
        closing(sqlite3.connect(tmp_path / "first" / FILE_NAME)) as of,
        closing(sqlite3.connect(folder / FILE_NAME)) as to,
    ):
        of.backup(to)
    (folder / FILE_NAME).chmod(before)
    with closing(open_and_write(folder)):
        held = modes(folder)
    assert {held.pop("lock"), *held.values()} == {0o600, after}
    assert held == dict.fromkeys([FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"], after)


def test_quarantined_damaged_files_stay_private(tmp_path: Path) -> None:
    Store(tmp_path, "off").close()
    (tmp_path / FILE_NAME).write_bytes(b"x" * 100)
    (tmp_path / f"{FILE_NAME}.suspected").write_text("it was")
    with closing(open_and_write(tmp_path)):
        held = modes(tmp_path)
    assert f"{FILE_NAME}.damaged" in held
    assert {*held.values()} == {0o600}
