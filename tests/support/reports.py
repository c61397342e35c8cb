"""Reports from handmade traces and results."""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pandaeval_collector.base.result import EvaluatorInfo, Result, Unit
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored
from pandaeval_collector.cli._output import console
from pandaeval_collector.pipeline.line.listing import listed
from pandaeval_collector.show.view.results import signal_of
from pandaeval_collector.store import DecidedTrace, ResultRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._tables import print_summary
from pandaeval_lab.report import page
from pandaeval_lab.report.page import ReportOrigin
from pandaeval_otel.model import Trace


def result(
    trace: Trace | str,
    metric: str = "coherence",
    finding: Finding | float = 1.0,
    *,
    level: str = "trace",
    kind: str = "code",
    revision: int = 1,
    threshold: float | None = 0.5,
) -> Result:
    """Return a result about a trace or session."""
    made = Score(finding, "as composed") if isinstance(finding, float) else finding
    if isinstance(trace, str):
        unit = Unit(level, trace, "f" * 32, "a" * 16, trace, agent="helper", service="shop")
    else:
        unit = Unit(level, trace.trace_id, trace.trace_id, trace.root_span_id, trace.session_id, trace.agent, "shop")
    by = EvaluatorInfo(kind, "1", "judge-1" if kind == "llm" else None)
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    return Result("r" * 32, metric, unit, made, by, threshold, revision, True, 1.0, moment)


@dataclass(frozen=True, slots=True)
class Made:
    page: str
    index: dict[str, Any]
    details: dict[int, dict[str, Any]]

    def save(self, folder: Path) -> Path:
        file = folder / "report.html"
        file.write_text(self.page, encoding="utf-8")
        return file


@contextmanager
def finder_of(traces: Iterable[Trace], results: Iterable[Result]) -> Iterator[Finder]:
    """Open a store with handmade traces and results."""
    known, results = {each.trace_id: each for each in traces}, [*results]
    rows = [_row(each) for each in results if each.unit.level not in ("trial", "task")]
    sessions = {each.session_id for each in known.values()} | {e.unit.id for e in results if e.unit.level == "session"}
    with tempfile.TemporaryDirectory() as name, closing(Store(Path(name), "off")) as store:
        changes = WriteSet(
            traces=[DecidedTrace(bytes.fromhex(id_), 1, True, "d", frozenset(), [], 0) for id_ in known],
            session_traces=[
                SessionTraceRow(bytes.fromhex(id_), each.session_id, each.start_ns, each.end_ns, b"{}")
                for id_, each in known.items()
                if each.session_id is not None
            ],
            listed=[listed(each) for each in known.values()],
            results=rows,
            touched={each for each in sessions if each is not None},
        )
        store.commit(changes).result()
        with closing(Finder(store.path)) as finder:
            yield finder


def report(traces: Iterable[Trace], results: Iterable[Result], about: ReportOrigin | None = None) -> Made:
    known, results, out = {each.trace_id: each for each in traces}, [*results], io.StringIO()
    others = [(each.unit.id, each.to_dict()) for each in results if each.unit.level in ("trial", "task")]
    with (
        finder_of(known.values(), results) as finder,
        patch.object(page, "readable_trace", lambda _, id_: known[id_.hex()]),
    ):
        origin = about or ReportOrigin(["made.jsonl"], "2026-01-02T03:04:05+00:00", "")
        contents = page.write_report(out, finder, origin, others=others)
    assert f"{len(out.getvalue().encode()) / 1e6:.1f} MB" in contents
    return parsed(out.getvalue())


def tables(traces: Iterable[Trace], results: Iterable[Result], judge: str | None = None) -> str:
    """Return the tables of `pandaeval evaluate`."""
    traces, results, out, summary = [*traces], [*results], io.StringIO(), Summary()
    summary.agents_traces = len(traces)
    summary.has_sessions = any(each.session_id is not None for each in traces)
    for each in results:
        summary.add(each.to_dict())
    with finder_of(traces, results) as finder:
        summary.count(finder.connection())
        print_summary(summary, finder, console(file=out), judge)
    return out.getvalue()


def _row(result: Result) -> ResultRow:
    unit = result.unit
    about = f"{unit.trace_id}:{unit.id}" if unit.level == "turn" else unit.id
    key, revision = f"{unit.level}.{result.metric}", result.revision
    row = ResultRow(f"{about} {key} {revision}", about, key, revision, result.to_json())
    row.success, row.signal = result.success, signal_of(result.to_dict())
    return row


def parsed(page: str) -> Made:
    data = {name: _unpacked(packed) for name, packed in re.findall(r'id="([\w-]+)">([A-Za-z0-9+/=]*)</script>', page)}
    details = {int(at): held for name, block in data.items() if name != "index" for at, held in block.items()}
    return Made(page, data["index"], details)


def _unpacked(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


__all__ = ["Assumed", "Made", "Score", "Unscored", "parsed", "report", "result", "tables"]
