"""``pandaeval spans``: the spans of a trace that a data directory still holds, as they came, for the other commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import StoreFolder, folder_of, opened_folder
from pandaeval_collector.store.chunks import stored_traces


def spans(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="The trace's id, 32 hex digits, or the first few.")],
    output: Annotated[Path | None, typer.Option(help="Write here; if not given, to standard output.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML): says where the store is.")] = None,
    store: StoreFolder = None,
) -> None:
    """Write what is stored of a trace as length-delimited OTLP, for inspect and evaluate."""
    if len(trace) < 4 or set(trace.lower()) - set("0123456789abcdef"):
        raise UserError(f"{trace}: the id of a trace has 32 hex digits, of which the first few are enough")
    folder = folder_of(config, store)
    with opened_folder(folder, read_only=True) as connection:
        found = [*stored_traces(connection, trace)]
    if len({each.trace_id for each in found}) > 1:
        raise UserError(f"{trace} is the beginning of several ids: write more of it")
    if not found:
        raise UserError(
            f"no spans of {trace} in {folder}: those of an agent's trace are kept for store.retention, as far as "
            "store.keep_bytes goes, with store.keep_content: false for late.window; those of others for late.window"
        )
    if found[-1].damage:
        raise UserError(f"the spans of {trace} are damaged: {found[-1].damage}")
    written = b"".join(len(data).to_bytes(4, "big") + data for _, data in found[-1].parts)
    sys.stdout.buffer.write(written) if output is None else output.write_bytes(written)
