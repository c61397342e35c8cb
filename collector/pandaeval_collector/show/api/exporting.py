"""Operations that stream the rows of a filter, or the spans of a trace, as a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import FastAPI, Query
from starlette.responses import Response

from pandaeval_collector.show.api.filters import Filters, Window, limited_to_window
from pandaeval_collector.show.api.incidents import IncidentReads
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.report.export import (
    WRITERS,
    Subject,
    in_blocks,
    spans_of,
    stored_rows,
    stored_spans,
)
from pandaeval_collector.store.listed import Wanted

Of = Annotated[Subject, Query(description="Kind of object in each row.")]
Format = Annotated[Literal["json", "csv", "otlp"], Query(description="File format. otlp needs traces or sessions.")]
_MEDIA = {"json": "application/x-ndjson", "csv": "text/csv; charset=utf-8", "otlp": "application/octet-stream"}
_ENDINGS = {"json": "jsonl", "otlp": "pb"}


def export_routes(app: FastAPI, reads: Reads, names: Names) -> None:
    """Add the operations."""
    finder, incidents = reads.finder, IncidentReads(reads.finder, names)

    def pieces(wanted: Wanted, of: Subject, format_: str, window: Window) -> Iterator[bytes]:
        if of == "incidents":
            rows = incidents.every(wanted, window)
            return WRITERS[format_](of, (row.model_dump(mode="json") for row in rows))
        chosen = limited_to_window(names.wanted(wanted), window, int(time.time() * 1000))
        if format_ == "otlp":
            return stored_spans(finder, of, chosen)
        return WRITERS[format_](of, stored_rows(finder, of, chosen))

    @app.get("/export", response_class=Response, summary="All rows that match a filter, as JSON lines, CSV or OTLP")
    async def export(wanted: Filters, of: Of = "traces", format: Format = "json", window: Window = "all") -> Response:
        if format == "otlp" and of not in ("traces", "sessions"):
            raise ProblemError(422, "format: otlp exports spans of traces or sessions")
        made = await reads.run(lambda: in_blocks(pieces(wanted, of, format, window)))
        return await reads.stream(made, _MEDIA[format], f"{of}.{_ENDINGS.get(format, format)}")

    @app.get("/spans/{trace_id}", response_class=Response, summary="Stored spans of a trace, as length-delimited OTLP")
    async def spans(trace_id: str) -> Response:
        found = await reads.run(lambda: spans_of(finder, names.trace(trace_id).hex()))
        if not found:
            raise ProblemError(404, f"{NO_TRACE}; or its spans are no longer stored")
        return await reads.stream(iter([found]), _MEDIA["otlp"], f"{trace_id}.pb")
