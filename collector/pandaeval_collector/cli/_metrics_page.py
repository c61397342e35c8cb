"""The reference page of the metrics, made from the registry: ``pandaeval metrics --page``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.scoring.metric import Metric

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
_HEAD = """\
# Metrics

*Made from the registry by `pandaeval metrics --page`; do not edit.*

Every result is `scored` (measured from evidence), `assumed` (there was nothing to evaluate, and the metric's source
says what to report then: 1.0; it enters no average) or `unscored` (it should have been evaluated and was not; `why`
says what kept it). A metric that does not apply gives no result; where an older revision of a trace had one, any metric
may say `unscored` (`insufficient_evidence`, `metadata.taken_back`) in its place. All scores lie in 0..1, and 1 is best.
Metrics of kind `llm` are switched on by `judge.model`; see [judging.md](judging.md). `pandaeval prompts NAME` shows
what they ask.
Metrics of one's own stand beside them (YAML, Python, or a package): [custom-metrics.md](custom-metrics.md).
"""
_LABELLED = """\
## How far the scores without a judge tell

Recorded runs whose outcome is known, scored without a judge by `python tests/lab/bench/labelled.py --summary`. *AUROC*:
how often a good run scores higher than a bad one: 0.5 knows nothing. *Same length* compares runs of like length only.
*Baselines* take no thought at all: a score that is no better than those says nothing of its own. In brackets 95 %
intervals. The sets are other people's runs and no part of this repository; customer-service conversations (tau-bench,
tau2, agentrx) whose label is task success, single function calls (bfcl), and runs of some forty frameworks through one
scripted scenario each (captures; good: the happy one).

- `response`, `grounding`, `tool_loop` find what they name, and rarely anything else: a run that they fail is worth a
  look; one that they pass may still be wrong.
- On task success itself all of them are weak evidence, and so is a session's score without a judge: most runs that
  fail do so by wrong decisions that are well-formed and well-founded. No score here tells success better than the
  length of a conversation does, and among conversations of like length none is surely better than chance.
- The rules were written with these sets in view, the captures above all: figures of 0.9 to 1.0 there say that the rule
  does what it was made for, on one scenario, and bound from above what to expect of other runs. What counts is your own
  runs with [people's labels](trust.md).
- `coherence` and `loop_detection` see topics and words, not outcomes. In the captures' `multi_turn` a scripted model
  gives one answer to every question: both are right to fail it.
- The runs of otel-captures are instrumentations' own tests, whose stand-in models say anything, numbers at random too:
  the 20 runs that `grounding` fails there are two of them, repeated.
"""

_PLANTED = """
## Planted faults, where the spans do not repeat the history

Made-up values in the answers of good runs, the conversation before dropped from every span:
`python tests/lab/bench/drill.py --n 12 --set tau-bench tau2-pairs mcp-pairs --as history-off --summary` (12 copies of
each fault where it applies). Version 3 of `grounding`, which knew nothing of sessions,
noticed 0 of 958.
"""

_REPEATED = """
## Repeated tool calls, by code

`turn.tool_call_behavior_failure` has the label `repeated tool call` from code alone, by the rule of `tool_loop` within
each turn. Held against labels by `python tests/lab/bench/repeated_calls.py` (Wilson's 95 % intervals in brackets):

- In the recordings, calls are repeated on purpose in the scenario `loop` and nowhere else. The one that is missed
  writes its calls into attributes of model calls, and has no tool spans; the one that is found without a label is a run
  whose model call fails and whose framework made the same two calls three times over.
- A session that makes the same call twice need not repeat it in vain: in the last row most pairs stand in two turns, or
  something was changed in between (a speed test after each repair). The rule passes those, so its recall there is low
  on purpose; what it does find had been called before.
"""


def metrics_page(metrics: Mapping[str, Metric[Any, Any]], bands: Bands | None) -> str:
    """Returns the reference page in Markdown. ``bands``: those of the embedder whose thresholds are shown."""
    parts = [_HEAD, _overview(metrics, bands)]
    for level in dict.fromkeys((*_LEVELS, *(metric.level for metric in metrics.values()))):
        of_level = [metric for metric in metrics.values() if metric.level == level]
        if of_level:
            parts.append(f"## Level {level}\n\n{_LEVELS.get(level, '')}\n")
            parts += [_section(metric, bands) for metric in of_level]
    return "\n".join(
        (
            *parts,
            _whys(),
            _LABELLED,
            _kept("labelled"),
            _kept("read_by_hand"),
            _PLANTED,
            _kept("planted"),
            _kept("aims"),
            _REPEATED,
            _kept("repeated_calls"),
        )
    )


def _overview(metrics: Mapping[str, Metric[Any, Any]], bands: Bands | None) -> str:
    rows = (
        f"| [`{key}`](#{_anchor(key)}) | {metric.question} | {metric.kind} | {metric.threshold_for(bands):g} |"
        for key, metric in metrics.items()
    )
    return "\n".join(("| metric | question | kind | threshold |", "|---|---|---|---|", *rows, ""))


def _section(metric: Metric[Any, Any], bands: Bands | None) -> str:
    told = _told(metric)
    facts = {
        "kind": f"`{metric.kind}`, version {metric.version}",
        "scale": told.pop("Scale", "0..1, 1 is best"),
        "threshold": _threshold(metric, bands),
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


def _threshold(metric: Metric[Any, Any], bands: Bands | None) -> str:
    default = f"{metric.threshold_for(bands):g}"
    if callable(metric.threshold):
        return f"{default} with the embedded model, {metric.threshold(None):g} where there is no table of its bands"
    return default


def _cost(metric: Metric[Any, Any]) -> str:
    if metric.kind != "llm":
        return _COSTS.get(metric.kind, "")
    asked = [rubric.name for rubric in metric.rubrics]
    shared = [f"`{name}`" for name in asked if name != metric.name]
    if not shared:
        return "1 model call"
    return f"1 model call, and at most {' and '.join(shared)}, shared with the other metrics of the trace"


def _whys() -> str:
    rows: Iterator[str] = (f"| `{why}` | {meaning} |" for why, meaning in _WHYS.items())
    return "\n".join(("## Why a result is unscored\n", "| why | meaning |", "|---|---|", *rows, ""))


def _kept(name: str) -> str:
    """Returns what a benchmark (``labelled.py --summary``, ``repeated_calls.py`` of tests/lab/bench) printed last."""
    return files("pandaeval_collector.scoring.metrics").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def _anchor(key: str) -> str:
    return key.replace(".", "")
