"""``pandaeval report``: the HTML report of what a collector has scored, also while it runs."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import parse_duration
from pandaeval_collector.cli._config import StoreFolder, given, resolve_config
from pandaeval_collector.cli._output import OutputFile, console, progress
from pandaeval_collector.cli._report import default_file
from pandaeval_collector.cli._stored_report import write_stored
from pandaeval_collector.cli._where import HELP as WHERE
from pandaeval_collector.cli._where import parse_where
from pandaeval_collector.store.connection import FILE_NAME, TooSlowError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.wanted import Wanted

_LIMIT_S = 120.0
"""Time limit of reading one page of the list: only the caller waits for it."""


def report(
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only traces that started so long ago or later: 2h, 7d.")
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help=WHERE, metavar="KEY=VALUE")] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write here; else a terminal gets pandaeval-report.html.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file (YAML): says where the store is.")
    ] = None,
    store: StoreFolder = None,
) -> None:
    """Write what a collector has scored as an HTML report, from its data directory.

    Reads only, beside a running collector or with none. Leaves with 2 where there is nothing to report.
    """
    wanted, only = Wanted(since_ms=_since_ms(since)), parse_where(where or ())
    settings = resolve_config(config, given(store)).config
    folder = Path(settings.store.path)
    if not (folder / FILE_NAME).is_file():
        raise UserError(
            f"there is no store in {folder} (store.path or PANDAEVAL_DATA): `pandaeval collector` makes one and "
            "scores what applications send to it; docs/instrument.md says how they do. Files need none: "
            "`pandaeval evaluate FILE --format html`."
        )
    output = output or default_file(sys.stdout.isatty())
    finder = Finder(folder, _LIMIT_S)
    try:
        with ExitStack() as held, progress(console(stderr=True), "reading") as bar:
            told = write_stored(finder, settings, wanted, only, lambda: held.enter_context(OutputFile(output)), bar)
    except TooSlowError as error:
        raise UserError(f"{folder}: {error}") from error
    except sqlite3.Error as error:
        raise UserError(f"{folder}: the store cannot be read: {error}") from error
    finally:
        finder.close()
    typer.echo(f"{output or 'report'}: {told}", err=True)


def _since_ms(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int((time.time() - parse_duration(text)) * 1000)
    except ValueError as error:
        raise UserError(f"--since {text}: {error}") from None
