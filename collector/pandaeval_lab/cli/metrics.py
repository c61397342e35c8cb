"""``pandaeval metrics``: what can be scored."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.metric_cpu import CPU, EMBEDDING, Spent
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._output import console, many, print_json, print_table, table
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.cli._names import config_with_trials, names_of
from pandaeval_lab.replay.trace_files import TraceFiles


def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, with its full description.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    format_: given.Format = "table",
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="FILE",
            help="Score the traces of this file, and print what CPU time each metric takes; may be repeated.",
        ),
    ] = None,
    page: Annotated[bool, typer.Option("--page", help="Print the reference page of all metrics (Markdown).")] = False,
) -> None:
    """List the metrics: name, level, kind, default threshold, what they need."""
    resolved = config_with_trials(config)
    if cost:
        if name is not None:
            raise UserError(f"--cost tells what each metric takes: leave {name} out")
        return print_costs(cost, resolved, format_ == "json")
    known = registry(resolved.metrics.modules)
    bands = load("embedded").bands
    if page:
        typer.echo(metrics_page(known, bands), nl=False)
        return
    out = console()
    if name is not None:
        names = names_of(resolved)
        keys = sorted(names.select(name))
        if not keys:
            raise UserError(f"{name}: {names.unknown(name)}")
        if format_ == "json":
            return print_json([_facts(known[key], bands) for key in keys])
        for key in keys:
            metric = known[key]
            out.print(f"{key}  ({metric.kind}, version {metric.version})")
            out.print(f"threshold {metric.threshold_for(bands):g}, needs {metric.needs}")
            out.print(f"can be unscored: {', '.join(metric.whys)}\n")
            out.print(re.sub(r"(?::\w+:)?`{1,2}~?([^`]+)`{1,2}", r"\1", metric.description).strip() + "\n")
        return
    if format_ == "json":
        return print_json([_facts(each, bands) for each in known.values()])
    rows = ((m.name, m.level, m.kind, f"{m.threshold_for(bands):g}", m.needs, m.question) for m in known.values())
    print_table(("name", "level", "kind", "threshold", "needs", "question"), rows)


def _facts(metric: Metric[Any, Any], bands: Bands | None) -> dict[str, Any]:
    return {
        "key": metric.key,
        "name": metric.name,
        "level": metric.level,
        "kind": metric.kind,
        "version": metric.version,
        "threshold": metric.threshold_for(bands),
        "needs": metric.needs,
        "question": metric.question,
        "unscored": [str(why) for why in metric.whys],
    }


_LEVELS = {
    "trace": "Each run of an agent, as one trace holds it.",
    "session": "All traces of a conversation, when it closes.",
    "turn": "A message of the user's, and all that the agent does up to the next one.",
    "trial": "One attempt at a case.",
    "task": "A case over its trials.",
}
_COSTS = {
    "embedding": "no model; an embedding of each text, by the embedded model unless another is configured",
    "code": "no model",
    "math": "no model; arithmetic over the scores of the traces",
}
_WHYS = {
    "judge_failed": "the judge could not be reached, or refused the prompt",
    "timeout": "the judge did not answer in time, however often it was asked",
    "invalid_verdict": "the judge's answer did not hold, twice",
    "injection_suspected": "the judge says that the run tries to tell it how to judge",
    "over_budget": "the day's money or tokens were used up, or more was asked, for good, than the judge's limits allow",
    "not_sampled": "the session is not in the sample; counted, not emitted one by one",
    "incomplete_trace": "the trace was closed before its root ended, or is a part of one over several services",
    "no_content": "what the metric reads was not captured, or holds no words",
    "insufficient_evidence": "too little of what the metric weighs was there",
    "metric_error": "the metric itself failed; the log says how",
}
_KEPT = ("labelled", "read_by_hand", "planted", "aims", "repeated_calls")
"""What benchmarks (``--summary`` of those in tests/lab/bench) printed last."""


def metrics_page(metrics: Mapping[str, Metric[Any, Any]], bands: Bands | None) -> str:
    """Returns the reference page in Markdown. ``bands``: those of the embedder whose thresholds are shown."""
    rows = (
        f"| [`{key}`](#{key.replace('.', '')}) | {each.question} | {each.kind} | {each.threshold_for(bands):g} |"
        for key, each in metrics.items()
    )
    parts = ["| metric | question | kind | threshold |", "|---|---|---|---|", *rows, ""]
    for level in dict.fromkeys((*_LEVELS, *(metric.level for metric in metrics.values()))):
        of_level = [metric for metric in metrics.values() if metric.level == level]
        if of_level:
            parts.append(f"## Level {level}\n\n{_LEVELS.get(level, '')}\n")
            parts += [_section(metric, bands) for metric in of_level]
    parts += ["## Why a result is unscored\n", "| why | meaning |", "|---|---|"]
    parts += [*(f"| `{why}` | {meaning} |" for why, meaning in _WHYS.items()), ""]
    benchmarks = files("pandaeval_collector.scoring.metrics")
    kept = {name: benchmarks.joinpath(f"{name}.md").read_text(encoding="utf-8").strip() for name in _KEPT}
    page = Path(__file__).with_name("_metrics.md").read_text(encoding="utf-8")
    return page.format(metrics="\n".join(parts), **kept)


def _section(metric: Metric[Any, Any], bands: Bands | None) -> str:
    told = _told(metric)
    threshold = f"{metric.threshold_for(bands):g}"
    if callable(metric.threshold):
        threshold += f" with the embedded model, {metric.threshold(None):g} where there is no table of its bands"
    facts = {
        "kind": f"`{metric.kind}`, version {metric.version}",
        "scale": told.pop("Scale", "0..1, 1 is best"),
        "threshold": threshold,
        "needs": metric.needs,
        "costs": _cost(metric),
        "unscored": ", ".join(f"`{why}`" for why in metric.whys),
        "source": told.pop("Source", "ours"),
    }
    rows = (f"| {name} | {value} |" for name, value in facts.items() if value)
    return "\n".join(
        (f"### {metric.key}\n", f"**{metric.question}**\n", told["text"], "", "| | |", "|---|---|", *rows, "")
    )


def _told(metric: Metric[Any, Any]) -> dict[str, str]:
    """Returns the metric's description as Markdown, without its first line, under ``text``; ``Scale`` and ``Source``
    apart."""
    doc = metric.description
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", doc.partition("\n")[2]).replace("``", "`").strip()
    found = {}
    for name in ("Scale", "Source"):
        stated = re.search(rf"^{name}: (.*?)\.?$", text, re.MULTILINE)
        if stated:
            found[name] = stated[1]
            text = text.replace(stated.group(), "")
    return {"text": re.sub(r"\n{3,}", "\n\n", text).strip(), **found}


def _cost(metric: Metric[Any, Any]) -> str:
    if metric.kind != "llm":
        return _COSTS.get(metric.kind, "")
    asked = [rubric.name for rubric in metric.rubrics]
    shared = [f"`{name}`" for name in asked if name != metric.name]
    if not shared:
        return "1 model call"
    return f"1 model call, and at most {' and '.join(shared)}, shared with the other metrics of the trace"


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
    cells = []
    for row in rows:
        numbers = ["" if each is None else f"{each:,.1f}" for each in (row.median, row.worst, row.worst_span)]
        asked = "" if row.units is None else f"{row.units:,}"
        cells.append([row.metric, f"{row.share:.1%}", f"{row.span:,.2f}", asked, *numbers, row.worst_trace or ""])
    out.print(table(heads, cells, on=out))
    out.print(
        f"CPU time over {many(traces, 'trace')} and {many(spans, 'span')}; a unit is a trace, or the session of a "
        "session metric; what several metrics read is counted to the first."
    )
