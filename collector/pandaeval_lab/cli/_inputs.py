"""The runs of a command, from files, trace stores or a data directory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.cli._config import opened_folder
from pandaeval_collector.cli._options import argument, given_by, option
from pandaeval_collector.cli._output import console, notice, safe
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.store.chunks import stored_traces
from pandaeval_lab.replay.files import BadLine, Input, Request, UnusableInputError
from pandaeval_lab.replay.sources import TraceSource
from pandaeval_lab.replay.trace_files import Read, TraceFiles
from pandaeval_otel.base.component_errors import raised_text
from pandaeval_otel.model import Trace

_EXPECTED = (
    "Expected OTLP/JSON lines (one export request per line), length-delimited OTLP protobuf, or a response of Jaeger "
    "or Tempo."
)
READ_LIMIT_S = 120.0
"""Time limit for reading a page. It is long, because only the caller waits."""
FILES = "Trace files, - for standard input, or jaeger:// and tempo:// addresses."
_STORE = "Read runs from this data directory of a collector."


class Inputs:
    """Yields every request once, with a progress bar on a terminal.

    If a file cannot be opened, the command ends before it reads any file. Files without requests are in ``unusable``.
    Raises ``UserError`` if all files are unusable.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self.unusable: list[str] = []
        self._files = tuple(files)
        self._causes: list[str] = []
        self._notes: list[str] = []

    def __iter__(self) -> Iterator[Request | BadLine]:
        try:
            for name in self._files:
                if name != "-":
                    _opened(name).close()
        except UnusableInputError as error:
            raise UserError(str(error)) from error
        progress = Progress(
            TextColumn("reading {task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]} requests"),
            TimeRemainingColumn(),
            console=console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        with progress, guarded():
            for name in self._files:
                yield from self._requests(name, progress)
        for note in self._notes:
            notice(note)
        if len(self.unusable) == len(self._files):
            raise UserError("\n".join([*self._causes, *self.unusable]))

    def check(self) -> None:
        """Raise ``UserError`` if a file was unusable, at the end of a command."""
        if self.unusable:
            raise UserError("\n".join(self.unusable))

    def _requests(self, name: str, progress: Progress) -> Iterator[Request | BadLine]:
        good = 0
        cause = ""
        try:
            source = _opened(name)
            task = progress.add_task(safe(name), total=source.size or None, count=0)
            for request in source.requests():
                if isinstance(request, BadLine):
                    cause = cause or f"{request.place}: {request.reason}"
                else:
                    good += 1
                yield request
                progress.update(task, completed=source.read_bytes, count=good)
            self._notes += source.notes
        except UnusableInputError as error:
            self.unusable.append(str(error))
            return
        if not good:
            self._causes += [cause] if cause else []
            self.unusable.append(f"{name}: no traces found. {_EXPECTED}")


def requests(files: Iterable[str]) -> Iterator[Request | BadLine]:
    """Yield requests, and raise ``UserError`` at the end if any file is unusable."""
    inputs = Inputs(files)
    yield from inputs
    inputs.check()


def traces_of(files: Iterable[str]) -> Iterator[Trace]:
    """Yield every trace of the files by start. Raises ``UserError``."""
    with TraceFiles() as run:
        run.add_all(requests(files))
        yield from run.traces()


def _opened(name: str) -> Input | TraceSource:
    return TraceSource(name) if "://" in name else Input(name)


def print_problems(read: Read, telemetry: Telemetry | None = None) -> None:
    """Print the unreadable parts of the input, and which components raised errors."""
    problems = [*read.problems]
    if read.bad > len(problems):
        problems.append(f"… and {read.bad - len(problems)} more")
    if telemetry and (raised := telemetry.component_errors()):
        problems.append(f"components raised errors, so their results are missing: {raised_text(raised)}")
    out = console(stderr=True)
    for problem in problems:
        out.print(f"warning: {safe(problem)}", style="yellow")


@dataclass(frozen=True, slots=True)
class RunSource:
    files: Annotated[list[str] | None, argument(FILES)] = None
    store: Annotated[Path | None, option(_STORE, metavar="FOLDER")] = None

    def requests(self) -> Iterator[Request | BadLine]:
        """Read every request. Raises ``UserError``."""
        if bool(self.files) == (self.store is not None):
            raise UserError("name files or the address of a trace store, or a data directory with --store; not both")
        yield from requests(self.files or ()) if self.store is None else _stored(self.store)


run_source = given_by("source", RunSource)
"""Gives a command the options that choose its runs, in place of its parameter ``source``."""


def _stored(folder: Path) -> Iterator[Request]:
    with opened_folder(folder, read_only=True) as connection:
        for trace in stored_traces(connection):
            yield from (Request(logs, data) for logs, data in trace.parts)
