"""A data directory has one owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.store import StoreBusyError
from pandaeval_collector.store.directory import Directory


@pytest.mark.parametrize("is_removed", [False, True], ids=["locked", "without its lock file"])
def test_a_data_directory_has_one_owner_until_it_is_closed(tmp_path: Path, is_removed: bool) -> None:
    directory = Directory(tmp_path / "data")
    if is_removed:
        (tmp_path / "data" / "lock").unlink()
    with pytest.raises(StoreBusyError):
        Directory(tmp_path / "data")
    directory.close()
    directory.close()
    Directory(tmp_path / "data").close()
