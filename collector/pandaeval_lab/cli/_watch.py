"""Runs a command again when files change."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pandaeval_collector.cli._output import message

_SUFFIXES = (".py", ".yaml", ".yml", ".toml")
_SKIPPED = ("__pycache__", "node_modules", "venv")
_POLL_S = 0.5
_PROGRAM = "from pandaeval_collector.cli import main; main()"


def watch(files: Sequence[str], output: Path) -> None:
    """Run this command in a new process, and again after each change. Ends by an interrupt."""
    arguments = [each for each in sys.argv[1:] if each != "--watch"]
    program = [sys.executable, "-c", _PROGRAM, *arguments]
    while True:
        before = snapshot(Path.cwd(), files, output)
        run_again(program)
        message("waiting for a change of a Python, YAML or TOML file; Ctrl-C ends")
        await_change(lambda: snapshot(Path.cwd(), files, output), before)


def run_again(program: Sequence[str]) -> None:
    """Run a program to its end, even after an interrupt."""
    process = subprocess.Popen(program)  # noqa: S603 - the command of the user, again
    try:
        process.wait()
    except KeyboardInterrupt:
        process.wait()  # it got the interrupt too, and grades what has ended
        raise


def await_change(
    current: Callable[[], Mapping[str, int]], before: Mapping[str, int], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when ``current`` differs from ``before``."""
    while current() == before:
        sleep(_POLL_S)


def snapshot(folder: Path, files: Iterable[str], output: Path) -> dict[str, int]:
    """Return the times of change of ``files`` and of the source files in a folder, without hidden folders and
    ``output``."""
    found = dict.fromkeys(files, 0)
    for place, folders, names in os.walk(folder):
        own = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        folders[:] = [each for each in own if Path(place, each).resolve() != output.resolve()]
        found.update((os.path.join(place, name), 0) for name in names if name.endswith(_SUFFIXES))
    for path in found:
        try:
            found[path] = os.stat(path).st_mtime_ns
        except OSError:  # a pattern, or a file that was just removed
            found[path] = 0
    return found
