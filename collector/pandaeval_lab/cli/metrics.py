"""``pandaeval metrics``: what can be scored."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.score import Why
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._output import console, print_json, print_table
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli._names import config_with_trials, names_of


def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, with its full description.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
    format_: given.Format = "table",
    page: Annotated[bool, typer.Option("--page", help="Print the reference page of all metrics (Markdown).")] = False,
) -> None:
    """List the metrics: name, level, kind, default threshold, what they need."""
    resolved = config_with_trials(config)
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
            out.print(f"can be unscored: {', '.join(whys(metric))}\n")
            out.print(re.sub(r"(?::\w+:)?`{1,2}~?([^`]+)`{1,2}", r"\1", description(metric)).strip() + "\n")
        return
    if format_ == "json":
        return print_json([_facts(each, bands) for each in known.values()])
    rows = ((m.name, m.level, m.kind, f"{m.threshold_for(bands):g}", m.needs, m.question) for m in known.values())
    print_table(("name", "level", "kind", "threshold", "needs", "question"), rows)


_JUDGED = frozenset(
    {Why.NOT_SAMPLED, Why.OVER_BUDGET, Why.TIMEOUT, Why.JUDGE_FAILED, Why.INVALID_VERDICT, Why.INJECTION_SUSPECTED}
)
"""Why a judge is not asked, or its answer not taken. The evaluator and the judge's runner say these, not the metric."""


def whys(metric: Metric[Any, Any]) -> tuple[Why, ...]:
    """Returns every why that a result of a metric can have, in the order of :class:`Why`."""
    can = {*metric.unscored, Why.METRIC_ERROR}
    if metric.level in ("trace", "turn", "trial"):
        can.add(Why.INCOMPLETE_TRACE)
    if metric.kind == "llm":
        can |= _JUDGED
    return tuple(why for why in Why if why in can)


def description(metric: Metric[Any, Any]) -> str:
    """Returns a metric at length, for people: the question first, with ``Scale:`` and ``Source:`` lines."""
    return (metric.about or sys.modules[metric.evaluate.__module__].__doc__ or metric.question).strip()


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
        "unscored": [str(why) for why in whys(metric)],
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
        "unscored": ", ".join(f"`{why}`" for why in whys(metric)),
        "source": told.pop("Source", "ours"),
    }
    rows = (f"| {name} | {value} |" for name, value in facts.items() if value)
    return "\n".join(
        (f"### {metric.key}\n", f"**{metric.question}**\n", told["text"], "", "| | |", "|---|---|", *rows, "")
    )


def _told(metric: Metric[Any, Any]) -> dict[str, str]:
    """Returns the metric's description as Markdown, without its first line, under ``text``; ``Scale`` and ``Source``
    apart."""
    doc = description(metric)
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
