"""``pandaeval spans``: the spans of a trace that a data directory still holds, as they came, for the other commands."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import StoreConfig, StoreFolder, folder_of
from pandaeval_collector.cli._hand import output_option
from pandaeval_collector.show.api.filters import Names
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.chunks import CHUNK, chunk_content, contents
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.finding import Finder


def spans(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="The trace's id, 32 hex digits.")],
    output: Annotated[Path | None, output_option("Write here; if not given, to standard output.")] = None,
    config: StoreConfig = None,
    store: StoreFolder = None,
) -> None:
    """Write what is stored of a trace as length-delimited OTLP, for inspect and evaluate."""
    folder = folder_of(config, store)
    try:
        with closing(Finder(folder)) as finder:
            trace_id = Names(finder, ()).trace(trace)
        found = stored_spans(folder, trace_id)
    except ProblemError as error:
        raise UserError(f"{trace}: {error.detail}; `pandaeval traces` lists what {folder} holds") from error
    except (FileNotFoundError, sqlite3.OperationalError) as error:
        raise UserError(f"there is no store to be read in {folder} (store.path or PANDAEVAL_DATA): {error}") from error
    if not found:
        raise UserError(
            f"no spans of {trace} in {folder}: those of an agent's trace are kept for store.retention, as far as "
            "store.keep_bytes goes, with store.keep_content: false for late.window; those of others for late.window"
        )
    written = b"".join(len(data).to_bytes(4, "big") + data for data in found)
    if output is None:
        sys.stdout.buffer.write(written)
    else:
        output.write_bytes(written)


def stored_spans(path: Path, trace_id: bytes) -> list[bytes]:
    """Returns the requests that the data directory ``path`` holds of a trace, decided or not, oldest first; also while
    a collector has it open. Raises ``FileNotFoundError``, and ``zstandard.ZstdError`` where they are damaged."""
    file = path / FILE_NAME
    if not file.is_file():
        raise FileNotFoundError(str(file))
    reader = connect(file, "off", read_only=True)
    try:
        rows = reader.execute(f"SELECT {CHUNK} FROM chunks WHERE trace_id = ? ORDER BY id", (trace_id,)).fetchall()  # noqa: S608
        kept = [] if rows else contents(reader, trace_id)
    finally:
        reader.close()
    return [*map(chunk_content, rows)] or [data for _, data in kept]
