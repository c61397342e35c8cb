"""Sentences on missing scores, with fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_collector.pipeline.line.setup_advice import cure as capture_cure
from pandaeval_collector.show.view.rates import VERDICTS, OutcomeCounts, handled

TASK = "trace.task_completion"
CURES: Mapping[str, str] = {
    "no_content": "These runs lack content: the question, the answer, or arguments and results of calls. Each reason "
    f"names the missing part. To capture content, with most instrumentations: {capture_cure(())}. If a service sends "
    "no content at all, the log names its setting.",
    "judge_failed": "The judge's provider gave no usable answer. Check the key and the model name, then try again.",
    "invalid_verdict": "The judge gave no valid reply. Each reason names the error. Try a stronger model.",
    "timeout": "The judge or the metric took too long. For a judge, raise judge.timeout, or lower judge.concurrency. "
    "For a metric without a judge, raise line.timeout.",
    "over_budget": "The daily budget is spent (judge.daily_usd), or the judge was too slow (judge.rpm, judge.tpm, "
    "judge.concurrency). Raise the limit, or lower judge.sample.",
    "not_sampled": "Not sampled, because judge.sample is below 1.",
    "incomplete_trace": "The trace was completed before its root span ended, or the run was stopped. Check that your "
    "application exports the root span, or raise the close.* limits.",
    "insufficient_evidence": "The evidence is not sufficient. For example, the judge could not decide, or too little "
    "was captured. The reason of each result names the cause.",
    "metric_error": "A metric or the embedder raised an error, which the reason names. Correct your own metric, or the "
    "settings of the embedder. Otherwise this is a bug in pandaeval: please report it with the reason.",
    "injection_suspected": "The run contains instructions to the judge, so it was not scored. Review it yourself.",
    "shutdown": "The collector stopped before this evaluation. Evaluate the run again.",
    "simulator_failed": "The simulated user broke the conversation. Try again, or use a stronger model.",
}
"""Cause and fix for each reason of missing scores."""


def unjudged_text(tallies: Mapping[str, OutcomeCounts], traces: int, judge: str | None) -> str:
    """Return a sentence on runs without a verdict on task success, and why; ``""`` if there is a verdict.

    ``traces``: number of runs. ``judge``: configured model.
    """
    scored = tallies[TASK].scored if TASK in tallies else 0
    whys = (tallies[key].whys for key in (TASK, *VERDICTS) if key in tallies)
    if not traces or scored >= traces or handled(tallies):
        return ""
    if scored:
        return f"Task success was judged in {scored:,} of {traces:,} runs."
    if judge is None:
        reason = "no model is configured (judge.model, or --model of evaluate)"
    elif why := next(filter(None, whys), ""):
        reason = f"no run has a verdict ({why})"
    else:
        reason = "task_completion did not run (see judge.detail, judge.only and metrics.enabled)"
    known = " Rules cannot show whether a task was done or an answer is right."
    return f"Task success was not judged: {reason}.{known}"


def missing(unscored: Iterable[tuple[str, Mapping[str, int]]]) -> list[dict[str, Any]]:
    """Group unscored results by reason, most frequent first, with fixes.

    ``unscored``: counts by reason for each metric.
    """
    by_reason: dict[str, Counter[str]] = {}
    for metric, reasons in unscored:
        for reason, times in reasons.items():
            by_reason.setdefault(reason, Counter())[metric] += times
    entries = []
    for reason, counts in by_reason.items():
        cure = CURES.get(reason, "")
        entries.append({"why": reason, "count": counts.total(), "metrics": dict(counts.most_common()), "cure": cure})
    return sorted(entries, key=lambda entry: -entry["count"])
