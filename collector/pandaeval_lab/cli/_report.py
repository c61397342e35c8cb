"""The HTML report of a run over files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from pandaeval_collector.base.result import Result, now
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.cli._output import many
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.store.failures import Failure
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause, by_code
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.collect import Report, ReportOrigin

_SHOWN_GROUPS = 100


def default_file(terminal: bool) -> Path | None:
    """Returns where a report goes without ``--output``: a file if standard output is a terminal, which it would flood,
    else ``None`` for standard output."""
    return Path("pandaeval-report.html") if terminal else None


def write_report(
    files: TraceFiles,
    results: Callable[[Callable[[Conclusion], None]], Iterator[Result]],
    summary: Summary,
    target: TextIO,
    origin: ReportOrigin,
    *,
    grouped: Callable[[Sequence[Failure]], tuple[RootCause, ...]] = by_code,
    on_scored: Callable[[int, int], None] = lambda done, total: None,
    failed_gates: Callable[[], Sequence[str]] = tuple,
) -> str:
    """Writes the report of ``files``, and returns a sentence on its size. ``results`` scores what is read, and calls
    its argument with each batch of traces; ``origin``: what was asked for, without what comes of it; ``grouped`` groups
    failures. ``on_scored`` is called with the number of scored traces and of all."""
    scored = without_agents = left_out = 0
    total = files.waiting()

    def decided(decision: Conclusion) -> None:
        nonlocal scored, without_agents, left_out
        report.traces(decision.traces)
        summary.runs(decision.told)
        left_out += len(decision.left_out)
        scored += len(decision.traces)
        without_agents += decision.not_genai
        on_scored(scored + left_out + without_agents, total)

    with Report(total) as report:
        for result in results(decided):
            summary.take(result)
            report.result(result)
        summary.groups = grouped(summary.failures)
        about = replace(
            origin,
            made_at=now().isoformat(timespec="seconds"),
            version=installed_version(),
            requests=files.read.requests,
            items=files.read.items,
            unreadable=files.read.bad,
            problems=tuple(files.read.problems),
            without_agents=without_agents,
            left_out=left_out,
            failures=[
                {**group.to_dict(), "examples": [{"place": one.place, "trace": one.trace_id} for one in group.examples]}
                for group in summary.groups[:_SHOWN_GROUPS]
            ],
            cases=summary.layers.brief() if summary.layers is not None else (),
            gates=failed_gates(),
        )
        size = report.write(target, about)
    sessions, traces = len(summary.sessions_worst_first()), summary.traces
    return f"{many(sessions, 'session')}, {many(traces, 'trace')}, {size / 1e6:.1f} MB; open it in a browser"
