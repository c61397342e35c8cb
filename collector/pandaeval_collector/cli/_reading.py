"""Reading input files with a progress bar, shared by the commands that do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from pandaeval_collector.files import BadLine, Request


def requests(files: Iterable[str]) -> Iterator[Request | BadLine]:
    """Every request of every file; a bar on stderr while it lasts, if that is a terminal. Raises ``UserError``."""
    from pandaeval_collector.errors import UserError
    from pandaeval_collector.files import BadLine, Input, UnusableInputError

    progress = Progress(
        TextColumn("reading {task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]} requests"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with progress:
        for name in files:
            good = 0
            problem = ""
            try:
                source = Input(name)
                task = progress.add_task(name, total=source.size or None, count=0)
                for request in source.requests():
                    if isinstance(request, BadLine):
                        problem = problem or f"{request.place}: {request.reason}"
                    else:
                        good += 1
                    yield request
                    progress.update(task, completed=source.read_bytes, count=good)
            except UnusableInputError as error:
                raise UserError(str(error)) from error
            if not good:
                first = f"{problem}\n" if problem else ""
                raise UserError(
                    f"{first}{name}: nothing could be read from it. Expected OTLP/JSON lines (one export request a "
                    "line, as the OpenTelemetry Collector's file exporter writes) or length-delimited OTLP protobuf."
                )
