"""The reference page of the metrics, made of the registry so that it cannot fall behind.

cd tests && python -m support.metrics_page    # writes docs/reference/metrics.md
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cli.metrics import description, whys
from support.flag_counts import recorded, table

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
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
    "over_budget": "the day's money was used up, or more was asked, for good, than the judge's limits allow",
    "not_sampled": "the session is not in the sample; counted, not emitted one by one",
    "incomplete_trace": "the trace was closed before its root ended, or is a part of one over several services",
    "no_content": "what the metric reads was not captured, or holds no words",
    "insufficient_evidence": "too little of what the metric weighs was there",
    "metric_error": "the metric itself failed; the log says how",
    "simulator_failed": "the model that plays the user of a case spoilt the conversation",
}
_KEPT = ("labelled", "read_by_hand", "planted", "aims", "repeated_calls")
"""What benchmarks (``--summary`` of those in tests/lab/bench) printed last."""


def reference_page() -> str:
    """The reference page in Markdown, with the thresholds of the embedded model."""
    metrics, bands = registry((GRADERS,)), load("embedded").bands
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
    page = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return page.format(metrics="\n".join(parts), flags=table(recorded()), **kept)


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


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
