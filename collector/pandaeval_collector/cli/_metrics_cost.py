"""What ``pandaeval metrics --cost`` prints: the CPU time of each metric over the traces of files."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from statistics import median

from pandaeval_collector.base.metric_cpu import CPU, EMBEDDING, Spent
from pandaeval_collector.cli._inputs import requests
from pandaeval_collector.cli._output import console, many, print_json, table
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import close_rules, evaluator
from pandaeval_collector.runs.trace_files import TraceFiles

REST = "all else"
_LOADING = 20
"""So many requests are scored beforehand and not counted, so that models are loaded."""


@dataclass(frozen=True, slots=True)
class MetricCost:
    """The CPU microseconds of one metric. ``units``: how many traces or sessions it was asked about; ``worst_span``: of
    the trace that was dearest for its spans; ``None``: not known by unit."""

    metric: str
    share: float
    span: float
    units: int | None = None
    median: float | None = None
    worst: float | None = None
    worst_span: float | None = None
    worst_trace: str | None = None


@dataclass(slots=True)
class CostsByUnit:
    """Sums up the CPU seconds of each metric by trace or session, and the number of spans of each trace."""

    seconds: dict[str, defaultdict[str, float]] = field(default_factory=dict)
    spans: dict[str, int] = field(default_factory=dict)

    def spent(self, unit_id: str, spent: Spent) -> None:
        """Adds what metrics took for one trace or session: a :attr:`MetricCpu.listener`."""
        for key, seconds in spent:
            self.seconds.setdefault(key, defaultdict(float))[unit_id] += seconds

    def decided(self, decision: Conclusion) -> None:
        """Notes how many spans each agent's trace of a decision has."""
        self.spans.update((trace.trace_id, len(trace.spans)) for trace in decision.traces)

    def rows(self, embedding: float, whole: float) -> list[MetricCost]:
        """Returns a row for each metric, dearest first, then embedding (CPU seconds) and the rest of ``whole``."""
        spans = sum(self.spans.values())
        if not spans:
            return []
        rows = sorted((self._row(key, spans, whole) for key in self.seconds), key=lambda row: -row.span)
        metrics = sum(sum(each.values()) for each in self.seconds.values())
        rest = ((EMBEDDING, embedding), (REST, max(0.0, whole - metrics - embedding)))
        return rows + [MetricCost(name, each / whole, each / spans * 1e6) for name, each in rest]

    def _row(self, key: str, spans: int, whole: float) -> MetricCost:
        of_units = self.seconds[key]
        total, by_unit = sum(of_units.values()), sorted(of_units.values())
        known = ((of_units[each] / count, each) for each, count in self.spans.items() if each in of_units)
        by_span = max(known, default=None)
        return MetricCost(
            key,
            total / whole,
            total / spans * 1e6,
            len(by_unit),
            median(by_unit) * 1e6,
            by_unit[-1] * 1e6,
            None if by_span is None else by_span[0] * 1e6,
            None if by_span is None else by_span[1],
        )


def costs(files: Sequence[str], config: Config) -> tuple[list[MetricCost], int, int]:
    """Scores the traces of files without a judge. Returns the cost of each metric, and how many traces and spans of
    agents there were."""
    heard, scorer = CostsByUnit(), evaluator(config)
    if "-" not in files:  # loading at first use is no metric's cost
        with TraceFiles(close_rules(config)) as first:
            first.add_all(islice(requests(files), _LOADING))
            for _ in replay(first, scorer):
                pass
    with TraceFiles(close_rules(config)) as run:
        run.add_all(requests(files))
        embedded = CPU.seconds().get(EMBEDDING, 0.0)
        CPU.listener, before = heard.spent, time.process_time()
        try:
            for _ in replay(run, scorer, on_decided=heard.decided):
                pass
        finally:
            CPU.listener = None
        whole = time.process_time() - before
        embedded = CPU.seconds().get(EMBEDDING, 0.0) - embedded
    return heard.rows(embedded, whole), len(heard.spans), sum(heard.spans.values())


def print_costs(files: Sequence[str], config: Config, as_json: bool) -> None:
    """Prints the cost of each metric over the traces of files, as a table or one JSON object a line."""
    rows, traces, spans = costs(files, config)
    if as_json:
        return print_json([asdict(row) for row in rows])
    out = console()
    heads = ("metric", "share", "µs a span", "asked", "µs a unit, median", "worst", "worst µs a span", "in trace")
    out.print(table(heads, map(_cells, rows), on=out))
    out.print(
        f"CPU time over {many(traces, 'trace')} and {many(spans, 'span')}; a unit is a trace, or the session of a "
        "session metric; what several metrics read is counted to the first."
    )


def _cells(row: MetricCost) -> list[str]:
    asked = "" if row.units is None else f"{row.units:,}"
    numbers = ["" if each is None else f"{each:,.1f}" for each in (row.median, row.worst, row.worst_span)]
    return [row.metric, f"{row.share:.1%}", f"{row.span:,.2f}", asked, *numbers, row.worst_trace or ""]
