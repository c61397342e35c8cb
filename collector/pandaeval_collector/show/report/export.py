"""Exports the rows of a filter as JSON lines, CSV or OTLP, for API and commands."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import orjson
from zstandard import ZstdError

from pandaeval_collector.show.report.incidents import IncidentRow
from pandaeval_collector.show.view.rows import SessionRow, TraceRow
from pandaeval_collector.show.view.texts import csv_cell
from pandaeval_collector.store.finding import Finder, every
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.listed_pages import ListedSession

Subject = Literal["traces", "sessions", "results", "incidents"]
COLUMNS: Mapping[Subject, tuple[str, ...]] = {
    "traces": tuple(TraceRow.model_fields),
    "sessions": tuple(SessionRow.model_fields),
    "incidents": tuple(IncidentRow.model_fields),
    "results": (
        *("id", "revision", "level", "metric", "outcome", "score", "success", "label", "reason", "why", "trace_id"),
        *("span_id", "session_id", "agent", "service", "environment", "final", "cost_usd", "tokens", "time"),
    ),
}
"""Columns of a CSV file."""
_BLOCK = 64 << 10
_ALL = 1_000_000
Row = Mapping[str, Any]


def json_lines(_: Subject, rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield each row as a line of JSON."""
    for row in rows:
        yield orjson.dumps(row) + b"\n"


def csv_lines(of: Subject, rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield a head and each row as a line of CSV, lists and objects as JSON.

    A text that a spreadsheet would take for a formula gets a leading ``'``.
    """
    columns, text = COLUMNS[of], io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()  # the head, if there is no row


WRITERS: Mapping[str, Callable[[Subject, Iterable[Row]], Iterator[bytes]]] = {"json": json_lines, "csv": csv_lines}
"""Formats of rows by name."""


def stored_rows(finder: Finder, of: Subject, wanted: Wanted) -> Iterator[Row]:
    """Yield traces and results newest first, or sessions worst first, a page at a time."""
    if of == "results":
        yield from every(finder.results, wanted)
    elif of == "sessions":
        for session in every(finder.sessions, wanted):
            yield SessionRow.of(session).model_dump(mode="json")
    else:
        for trace in every(finder.traces, wanted, worst_first=False):
            yield TraceRow.of(trace).model_dump(mode="json")


def stored_spans(finder: Finder, of: Subject, wanted: Wanted) -> Iterator[bytes]:
    """Yield the stored spans of each wanted trace, or of all traces of each wanted session."""
    if of == "sessions":
        for session in every(finder.sessions, wanted):
            for trace_id in _members(finder, session):
                yield spans_of(finder, trace_id)
    else:
        for trace in every(finder.traces, wanted, worst_first=False):
            yield spans_of(finder, trace.facts["id"])


def spans_of(finder: Finder, trace_id: str) -> bytes:
    """Return the stored spans and log records of a trace as length-delimited OTLP; empty if gone or damaged."""
    try:
        parts = finder.contents(bytes.fromhex(trace_id))
    except ZstdError:
        return b""
    return b"".join(len(data).to_bytes(4, "big") + data for _, data in parts)


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces, so that few are handed on."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= _BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _members(finder: Finder, session: ListedSession) -> list[str]:
    if session.id is not None:
        return finder.members(session.id, _ALL)
    return [] if session.worst is None else [session.worst.facts["id"]]


def _cell(value: Any) -> str:
    return orjson.dumps(value).decode() if isinstance(value, dict | list | tuple | bool) else csv_cell(value)
