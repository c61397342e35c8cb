"""The HTML report of what a data directory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from google.protobuf.message import DecodeError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import now
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.cli._output import many
from pandaeval_collector.cli._where import Where
from pandaeval_collector.config import Config
from pandaeval_collector.show.report.collect import Report
from pandaeval_collector.show.report.detail import stored_trace
from pandaeval_collector.show.report.index import ReportOrigin
from pandaeval_collector.show.report.live import facts_of
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.found import Listed
from pandaeval_collector.store.wanted import Wanted

_PAGE = 200


def write_stored(
    finder: Finder,
    settings: Config,
    wanted: Wanted,
    where: Where | None,
    out: Callable[[], TextIO],
    on_read: Callable[[int, int], None],
) -> str:
    """Writes the report of the stored traces that fit ``wanted`` and ``where`` to what ``out`` opens, once there is
    something to write, and returns a sentence on its size. ``on_read`` is called with the number of traces read and of
    all. Raises ``UserError`` where no trace fits."""
    total = finder.count(wanted)
    if not total:
        raise UserError(_nothing(finder, settings, finder.count(replace(wanted, since_ms=None))))
    read = traces = unreadable = 0
    sessions: dict[str, None] = {}
    with Report(total) as report:
        for row in _rows(finder, wanted):
            on_read(read, total)
            read += 1
            if where is not None and not _fits(row, where):
                continue
            traces += 1
            sessions.update({row.session: None} if row.session else {})
            try:
                trace = stored_trace(finder.contents(bytes.fromhex(row.facts["id"])))
            except (ValueError, DecodeError):
                unreadable, trace = unreadable + 1, None
            report.stored(facts_of(row), trace, row.results.values())
        if not traces:
            raise UserError(_nothing(finder, settings, total))
        for session_id, results in finder.of_sessions(list(sessions)).items():
            report.stored_session(session_id, results.values())
        about = ReportOrigin(
            sources=[f"store {Path(settings.store.path).resolve().name}"],
            made_at=now().isoformat(timespec="seconds"),
            version=installed_version(),
            judge=settings.judge.model,
            unreadable=unreadable,
            problems=["the spans of traces could not be read again"] if unreadable else [],
            where=where.text if where is not None else "",
            left_out=read - traces,
            modules=tuple(settings.metrics.modules),
        )
        size = report.write(out(), about)
    return f"{many(len(sessions), 'session')}, {many(traces, 'trace')}, {size / 1e6:.1f} MB; open it in a browser"


def _rows(finder: Finder, wanted: Wanted) -> Iterator[Listed]:
    """Yields the traces newest first, so that traces scored meanwhile are left out and none comes twice."""
    page = finder.traces(wanted, worst_first=False, after=None, limit=_PAGE)
    yield from page.rows
    while page.next is not None:
        page = finder.traces(wanted, worst_first=False, after=page.next, limit=_PAGE)
        yield from page.rows


def _fits(row: Listed, where: Where) -> bool:
    facts, status = row.facts, "error" if "error" in row.facts else "ok"
    return where.fits(facts.get("agent", ""), facts.get("service", ""), status, facts["at"] * 1_000_000)


def _nothing(finder: Finder, settings: Config, others: int) -> str:
    """Returns why there is nothing to report, and what to do. ``others``: how many stored traces do not fit."""
    path, server = settings.store.path, settings.server
    if others:
        names = finder.names()
        held = "; ".join(f"{key}s: {', '.join(names[key][:10])}" for key in ("agent", "service") if names[key])
        return f"none of the {others:,} agent traces in {path} fits --since and --where ({held})"
    return (
        f"no scored agent trace is in {path} yet. Traces come from applications that send OTLP to a running "
        f"`pandaeval collector` (gRPC {server.grpc}, HTTP {server.http}; docs/instrument.md says how), and are "
        "scored some seconds after their outermost span ended."
    )
