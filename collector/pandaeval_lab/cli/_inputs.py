"""Reading input files with a progress bar, shared by the commands that do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import console, safe
from pandaeval_collector.cli._terminal import guarded
from pandaeval_lab.replay.files import BadLine, Input, Request, UnusableInputError
from pandaeval_lab.replay.sources import TraceSource

_EXPECTED = (
    "Expected OTLP/JSON lines (one export request a line, as the OpenTelemetry Collector's file exporter writes), "
    "length-delimited OTLP protobuf, or traces as Jaeger and Tempo answer them."
)


class Inputs:
    """Yields every request of every file or trace store, once, with a progress bar on standard error if that is a
    terminal.

    A file that cannot be opened ends the command before any is read, since its name is probably a mistake. A file
    without any request does not stop the others: ``unusable`` says why. ``UserError`` ends the iteration if all are
    like that.
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
            typer.echo(f"notice: {safe(note)}", err=True)
        if len(self.unusable) == len(self._files):
            raise UserError("\n".join([*self._causes, *self.unusable]))

    def leave_if_unusable(self) -> None:
        """Prints which files were left out, and leaves with 2 if any was. Call it at the end of a command."""
        for sentence in self.unusable:
            typer.echo(sentence, err=True)
        if self.unusable:
            raise typer.Exit(2)

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
            self.unusable.append(f"{name}: nothing could be read from it. {_EXPECTED}")


def requests(files: Iterable[str]) -> Iterator[Request | BadLine]:
    """Yields requests as :class:`Inputs` does, but raises ``UserError`` at the end if any file is unusable."""
    inputs = Inputs(files)
    yield from inputs
    if inputs.unusable:
        raise UserError("\n".join(inputs.unusable))


def _opened(name: str) -> Input | TraceSource:
    return TraceSource(name) if "://" in name else Input(name)
