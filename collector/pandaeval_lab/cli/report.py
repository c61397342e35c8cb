"""``pandaeval report``: the HTML report of a collector's traces."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import TIMES
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import missing_store_error
from pandaeval_collector.cli._options import output_option
from pandaeval_collector.cli._output import message, output_file, progress
from pandaeval_collector.config import Config
from pandaeval_collector.show.api.filters import to_wanted
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.connection import FILE_NAME, TooSlowError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_lab.cli._formats import default_file
from pandaeval_lab.cli._inputs import READ_LIMIT_S
from pandaeval_lab.cli._names import stored
from pandaeval_lab.report.page import ReportOrigin, write_report

_OUTPUT = "Write to this file; default: standard output, or a new HTML file in a terminal."
_NO_TRACE = (
    "{path} has no scored agent trace yet. Send OTLP to a running `pandaeval collector` (gRPC {grpc}, HTTP {http}; "
    "docs/start/python.md). A trace is scored after its root span has ended and no span has arrived for close.quiet "
    "(10s)."
)


@given.filtered()
@stored
def report(
    filters: dict[str, Any],
    output: Annotated[Path | None, output_option(_OUTPUT)] = None,
    *,
    settings: Config,
) -> None:
    """Write the stored results of a collector as an HTML report.

    The command only reads the data directory, so you can run it beside a collector. Without --output, it writes to
    standard output, or in a terminal to pandaeval-report.html. All filters must match.

    Exit code 2: the store has no matching traces, or cannot be read.
    """
    times = {name: datetime.fromisoformat(filters[name]) for name in TIMES if name in filters}
    folder = Path(settings.store.path)
    if not (folder / FILE_NAME).is_file():
        raise missing_store_error(folder)
    output = output or default_file(sys.stdout.isatty())
    try:
        with closing(Finder(folder, READ_LIMIT_S)) as finder, progress("reading") as on_read:
            wanted = Names(finder, settings.metrics.modules).wanted(to_wanted(**filters | times))
            where = " ".join(f"{name}={value}" for name, value in filters.items())
            origin = origin_of(finder, settings, wanted, where)
            with output_file(output) as out:
                contents = write_report(out, finder, origin, wanted, on_read=on_read)
    except ProblemError as error:
        raise UserError(str(error)) from error
    except TooSlowError as error:
        raise UserError(f"{folder}: {error}") from error
    except sqlite3.Error as error:
        raise UserError(f"{folder}: the store cannot be read: {error}") from error
    message(f"{output or 'report'}: {contents}")


def origin_of(finder: Finder, settings: Config, wanted: Wanted, where: str) -> ReportOrigin:
    """Describe the stored traces that match ``wanted``. ``where``: filters as text.

    Raises ``UserError`` if no trace matches.
    """
    total, stored = finder.count(wanted), finder.count(Wanted())
    if not total:
        raise UserError(_nothing(finder, settings, stored))
    return ReportOrigin(
        sources=[f"store {Path(settings.store.path).resolve().name}"],
        judge=settings.judge.model,
        where=where,
        left_out=stored - total,
        modules=tuple(settings.metrics.modules),
    )


def _nothing(finder: Finder, settings: Config, stored: int) -> str:
    path, server = settings.store.path, settings.server
    if not stored:
        return _NO_TRACE.format(path=path, grpc=server.grpc, http=server.http)
    names = finder.names()
    known = "; ".join(f"{key}s: {', '.join(names[key][:10])}" for key in ("agent", "service") if names[key])
    return f"none of the {stored:,} agent traces in {path} matches the filters ({known})"
