"""The HTML report of what a data directory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pandaeval_collector.base.errors import UserError

if TYPE_CHECKING:
    from pandaeval_collector.cli._where import Where
    from pandaeval_collector.config import Config
    from pandaeval_collector.show.report.collect import Report
    from pandaeval_collector.store.finding import Finder
    from pandaeval_collector.store.found import Listed
    from pandaeval_collector.store.wanted import Wanted
    from pandaeval_otel.model import Trace

_PAGE = 200


@dataclass(slots=True)
class StoredReport:
    """Makes the report of the stored traces that fit ``wanted`` and ``where``. Reads only. One thread."""

    finder: Finder
    settings: Config
    wanted: Wanted
    where: Where | None
    left_out: int = 0
    unreadable: int = 0
    traces: int = 0
    sessions: int = 0

    def total(self) -> int:
        """Returns how many traces fit ``wanted``. Raises ``UserError`` where none does."""
        found = self.finder.count(self.wanted)
        if not found:
            raise UserError(self._nothing(self.finder.count(replace(self.wanted, since_ms=None))))
        return found

    def write(self, out: Callable[[], TextIO], total: int, on_read: Callable[[int, int], None]) -> int:
        """Writes the report to what ``out`` opens, once there is something to write. Returns its size in bytes.
        ``on_read`` is called with the number of traces read and ``total``. Raises ``UserError`` where no trace fits
        ``where``."""
        from pandaeval_collector.show.report.collect import Report

        with Report(total) as report:
            named: dict[str, None] = {}
            for row in self._rows():
                on_read(self.traces + self.left_out, total)
                if self._fits(row):
                    self._take(report, row)
                    named.update({row.session: None} if row.session else {})
            if not self.traces:
                raise UserError(self._nothing(total))
            for session_id, results in self.finder.of_sessions(list(named)).items():
                report.stored_session(session_id, results.values())
            self.sessions = len(named)
            return report.write(out(), self._about())

    def _rows(self) -> Iterator[Listed]:
        """Yields the traces newest first, so that traces scored meanwhile are left out and none comes twice."""
        after = None
        while True:
            page = self.finder.traces(self.wanted, worst_first=False, after=after, limit=_PAGE)
            yield from page.rows
            if page.next is None:
                return
            after = page.next

    def _fits(self, row: Listed) -> bool:
        facts = row.facts
        status = "error" if "error" in facts else "ok"
        fits = self.where is None or self.where.fits(
            facts.get("agent", ""), facts.get("service", ""), status, facts["at"] * 1_000_000
        )
        self.left_out += not fits
        return fits

    def _take(self, report: Report, row: Listed) -> None:
        facts: dict[str, Any] = {key: held for key, held in row.facts.items() if key != "session"}
        if row.session is not None:
            facts["session"] = row.session
        report.stored(facts, self._trace(facts["id"]), row.results.values())
        self.traces += 1

    def _trace(self, trace_id: str) -> Trace | None:
        from google.protobuf.message import DecodeError

        from pandaeval_collector.pipeline.line.stored_traces import rebuilt

        parts = self.finder.contents(bytes.fromhex(trace_id))
        try:
            return rebuilt(parts).trace if parts else None
        except (ValueError, DecodeError):
            self.unreadable += 1
            return None

    def _about(self) -> Any:
        from pandaeval_collector.base.result import now
        from pandaeval_collector.base.runtime.version import installed_version
        from pandaeval_collector.show.report.index import ReportOrigin

        return ReportOrigin(
            sources=[f"store {Path(self.settings.store.path).resolve().name}"],
            made_at=now().isoformat(timespec="seconds"),
            version=installed_version(),
            judge=self.settings.judge.model,
            unreadable=self.unreadable,
            problems=["the spans of traces could not be read again"] if self.unreadable else [],
            where=self.where.text if self.where is not None else "",
            left_out=self.left_out,
            modules=tuple(self.settings.metrics.modules),
        )

    def _nothing(self, others: int) -> str:
        """Returns why there is nothing to report, and what to do. ``others``: how many stored traces do not fit."""
        path, server = self.settings.store.path, self.settings.server
        if others:
            names = self.finder.names()
            held = "; ".join(f"{key}s: {', '.join(names[key][:10])}" for key in ("agent", "service") if names[key])
            return f"none of the {others:,} agent traces in {path} fits --since and --where ({held})"
        return (
            f"no scored agent trace is in {path} yet. Traces come from applications that send OTLP to a running "
            f"`pandaeval collector` (gRPC {server.grpc}, HTTP {server.http}; docs/instrument.md says how), and are "
            "scored some seconds after their outermost span ended."
        )
