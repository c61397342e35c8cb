"""User-supplied paths must be files."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pandaeval_collector.base.untrusted.user_files import open_given, read_given
from pandaeval_collector.cli import app
from support.commands import whole_app


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


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*words, name))
        else:
            yield (*words, name), each


def call(words: tuple[str, ...], command: Any, given: Any) -> str:
    """Return a call of the command that has ``{pipe}`` as the parameter ``given``."""
    found = [*words, *MORE.get(words, "").split()]
    for each in command.params:
        is_argument = each.param_type_name == "argument"
        if each is given:
            found += [*([] if is_argument else [each.opts[0]]), "{pipe}"]
        elif is_argument and each.required:
            found.append(f"{{{each.name}}}")
    return " ".join(found)


def calls() -> Iterator[str]:
    """Yield a call for each file that a command reads."""
    for words, command in commands(get_command(whole_app())):
        for each in command.params:
            is_late = words in LATE and "--config" in each.opts
            if str(each.metavar).startswith("FILE") and WRITTEN.isdisjoint(each.opts) and not is_late:
                yield call(words, command, each)


WRITTEN = {"--output", "--keep"}
MORE = {
    ("calibrate",): "--results none",
    ("judge", "align"): "--model m",
    ("store", "export"): "--output -",
    ("cases", "run"): "--agent app:answer --output {output}",
}
"""Options without which a command does not read its files."""
LATE = {("export",), ("cases", "from-trace"), ("cases", "from-failure")}
"""Commands that read the configuration after the answer of a collector."""
USABLE = {
    "labels": '{"session_id": "s", "name": "task_success", "value": true}\n',
    "files": '[{"id": "c", "inputs": {"task": "go"}, "expected_tools": []}]',
}
"""Files that a command reads before the pipe."""
TRACES = ("evaluate {pipe}", "inspect {pipe}", "drill {pipe}", "cases from-trace t --file {pipe}")


@pytest.mark.parametrize("command", [*TRACES, *calls()])
def test_every_command_rejects_a_pipe_as_an_input_file(command: str, pipe: Path) -> None:
    words = defaultdict(lambda: "none", pipe=str(pipe), output=str(pipe.with_name("output")))
    for name, content in USABLE.items():
        file = pipe.with_name(f"{name}.json")
        file.write_text(content)
        words[name] = str(file)
    result = CliRunner().invoke(app, command.format_map(words).split())
    assert result.exit_code, result.output
    assert isinstance(result.exception, SystemExit), result.output
    assert "is a pipe or a device" in " ".join(result.output.split()), result.output
