"""User-supplied paths must be files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.untrusted.user_files import open_given, read_given
from pandaeval_collector.cli import app


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    assert read_given(file) == b"abc" == read_given(str(file), 3)
    with pytest.raises(OSError, match="holds more than 0 MiB"):
        read_given(file, 2)


def test_pipes_devices_folders_and_missing_files_are_errors(tmp_path: Path, pipe: Path) -> None:
    for path in (pipe, Path("/dev/zero"), Path("/dev/full")):
        with pytest.raises(OSError, match="is a pipe or a device and no file; write what it gives into a file first"):
            open_given(path)
    with pytest.raises(IsADirectoryError):
        open_given(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_given(tmp_path / "none")
    with pytest.raises(OSError, match="pipe or a device"):
        open_given("/proc/self/fd/../../../dev/zero")


def test_a_descriptor_opened_by_the_shell_is_read() -> None:
    out, into = os.pipe()
    os.write(into, b"content")
    os.close(into)
    assert read_given(f"/dev/fd/{out}") == b"content"
    os.close(out)


@pytest.mark.parametrize(
    "command",
    [
        "labels import {}",
        "calibrate {} --results {}",
        "evaluate none --baseline {}",
        "passk {}",
        "evaluate {}",
        "evaluate --config {} {}",
        "evaluate --cases {} {}",
        "inspect {}",
        "drill {}",
        "drill none --baseline {}",
        "config check {}",
        "cases from-trace t --file {}",
        "collector --config {}",
    ],
)
def test_commands_reject_a_pipe_as_an_input_file(command: str, pipe: Path) -> None:
    result = CliRunner().invoke(app, command.format(pipe, pipe).split())
    assert result.exit_code not in (0, 1), result.output
    assert "is a pipe or a device" in " ".join(result.output.split()), result.output
