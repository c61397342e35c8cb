"""``pandaeval store``: check a data directory, and export its spans."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import opened_store, with_store_config
from pandaeval_collector.cli._options import option, output_option
from pandaeval_collector.cli._output import Listing, RunFormat, binary_file, many, message, progress, show
from pandaeval_collector.config import Config
from pandaeval_collector.store.checking import CURES, Damage, damages
from pandaeval_collector.store.chunks import StoredTrace, count_traces, stored_traces
from pandaeval_collector.store.connection import FILE_NAME, DamagedFileError, note_damage

_DAMAGES = Listing(("where", "row", "about", ("problem", "what")), "no damage found")

store = typer.Typer(help="Check a data directory, and export its spans.", no_args_is_help=True)


@store.command("verify")
@with_store_config
def verify(format_: given.Format = "table", *, settings: Config) -> None:
    """Check a data directory for damage.

    The check reads every page of the file. It also compares the checksums of spans, session data, results and waiting
    exports. It changes no data, and you can run it while a collector runs. If it finds damaged pages, the next start of
    the collector also checks the file.

    Exit code 1: the check found damage. Exit code 2: there is no store, or SQLite cannot open it.
    """
    with opened_store(settings, read_only=True) as connection:
        found = list(damages(connection))
    for damage in found:
        if damage.kind == "pages":
            error = DamagedFileError(damage.what)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            note_damage(Path(settings.store.path) / FILE_NAME, error)
    _tell(found, format_)
    if found:
        raise typer.Exit(1)


@store.command("export")
@with_store_config
def export(
    output: Annotated[Path, output_option("Write to this file; - for standard output.")],
    trace: Annotated[str, option("Export only traces whose ID starts with these digits.", metavar="ID")] = "",
    *,
    settings: Config,
) -> None:
    """Export spans and log records as length-delimited OTLP.

    You can run the export while a collector runs. If traces are damaged, the export skips and lists them, and the exit
    code is 1.
    """
    if trace.lower().strip("0123456789abcdef") or len(trace) > 32:
        raise UserError(f"--trace {trace}: a trace ID has 32 hexadecimal digits; a unique prefix is enough")
    traces = requests = 0
    damaged: list[StoredTrace] = []
    with (
        opened_store(settings, read_only=True) as connection,
        binary_file(output) as file,
        progress("exporting") as on_progress,
    ):
        total = count_traces(connection)
        for stored in stored_traces(connection, trace):
            if stored.damage:
                damaged.append(stored)
            else:
                traces += 1
            for _, data in stored.parts:
                file.write(len(data).to_bytes(4, "big") + data)
            requests += len(stored.parts)
            on_progress(traces + len(damaged), total)
    if trace and not traces and not damaged:
        raise UserError(
            f"no spans of a trace {trace} are stored. Spans of an agent's trace are deleted after store.retention, or "
            "earlier if they need more than a fifth of store.max_bytes. Spans of other traces, and all spans with "
            "store.keep_content: false, are deleted after late.window."
        )
    message(f"{many(traces, 'trace')} in {many(requests, 'request')}")
    for stored in damaged:
        message(f"left out: trace {stored.trace_id.hex()}: {stored.damage}")
    if damaged:
        raise typer.Exit(1)


def _tell(found: list[Damage], format_: RunFormat) -> None:
    rows = [{"where": d.kind, "row": d.key, "about": d.about, "what": d.what, "cure": CURES[d.kind]} for d in found]
    show(rows, _DAMAGES, format_)
    if found and format_ != "json":
        for kind in dict.fromkeys(each.kind for each in found):
            typer.echo(f"{kind}: {CURES[kind]}")
        typer.echo(many(len(found), "damage"))
