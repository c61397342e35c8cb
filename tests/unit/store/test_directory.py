"""A data directory that changes while it is looked at."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pandaeval_collector.store import directory as directory_module
from pandaeval_collector.store.directory import Directory


def test_it_goes_between_two_looks_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the guard of a store hears then is that it is gone, as a moment later."""
    path = tmp_path / "data"
    directory = Directory(path)
    real = directory_module.is_at

    def and_then_it_goes(looked_at: str | Path, opened: os.stat_result) -> bool:
        found = real(looked_at, opened)
        if path.is_dir():
            shutil.rmtree(path)
            path.write_text("in the way")
        return found

    monkeypatch.setattr(directory_module, "is_at", and_then_it_goes)
    assert directory.look() == "the data directory was moved, removed or replaced"
    directory.close()


def test_a_lock_that_cannot_be_put_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = Directory(tmp_path / "data")
    (tmp_path / "data" / "lock").unlink()

    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "_lock_file", full)
    assert directory.look() == ""
    assert "cannot be put back: No space left on device" in caplog.text
    directory.close()
