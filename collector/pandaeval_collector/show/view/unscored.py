"""What was not scored, in sentences for people: which tasks nobody judged, and what to do about each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_collector.pipeline.line.setup_advice import cure as capture_cure
from pandaeval_collector.show.view.rates import OutcomeCounts, handled

TASK = "trace.task_completion"
CURES: Mapping[str, str] = {
    "no_content": "What was captured of these runs is not enough: the question, the answer, or what calls were given "
    "and gave back. The reason on each says which, and the log how to switch it on; for most instrumentations: "
    + capture_cure(()),
    "judge_failed": "The judge's provider gave no usable answer. Check the key and the model's name, then try again.",
    "invalid_verdict": "The judge did not answer in the form that was asked for, twice. Try a stronger model.",
    "timeout": "The judge took too long. Raise judge.timeout, or lower judge.concurrency.",
    "over_budget": "The day's budget is spent. Raise judge.daily_usd, or lower judge.sample.",
    "not_sampled": "Left out on purpose: judge.sample is below 1.",
    "incomplete_trace": "The run was cut off before its outermost span ended. Send all services' spans to one place, "
    "or raise the close.* limits.",
    "insufficient_evidence": "Too little of what this metric builds on could be scored: mend the other entries first.",
    "metric_error": "A metric failed on this input. That is a defect of pandaeval: please report it with the reason.",
    "injection_suspected": "The run tries to instruct its judge. Read it with care: nothing in it was believed.",
    "shutdown": "The collector was stopped before it came to this. Evaluate it again.",
    "simulator_failed": "The model that plays the user spoilt the conversation. Try again, or a stronger model.",
}
"""What to do about many results that could not be scored, by why."""


def unasked(tallies: Mapping[str, OutcomeCounts], traces: int, judge: str | None) -> str:
    """Returns sentences for people: what was not judged and why. Empty if all was judged.
    ``traces``: how many runs there are; ``judge``: the model that is configured."""
    scored = tallies[TASK].scored if TASK in tallies else 0
    if not traces or scored >= traces or handled(tallies):
        return ""
    if scored:
        return f"Task success was judged in {scored:,} of {traces:,} runs."
    if judge is None:
        reason = "no model is configured (judge.model, or --model of evaluate)"
    elif TASK in tallies and tallies[TASK].unscored:
        reason = f"no run has a verdict ({tallies[TASK].whys})"
    else:
        reason = "task_completion was not asked (metrics.enabled, or judge.only leaves these runs out)"
    known = " What rules find says nothing of whether a task was done, or an answer is right."
    return f"Task success was not judged: {reason}.{known}"


def missing(unscored: Iterable[tuple[str, Mapping[str, int]]]) -> list[dict[str, Any]]:
    """Groups unscored results by reason, most first, with cures. ``unscored``: each metric with the number of its
    results by reason."""
    by_reason: dict[str, Counter[str]] = {}
    for metric, reasons in unscored:
        for reason, times in reasons.items():
            by_reason.setdefault(reason, Counter())[metric] += times
    entries = []
    for reason, counts in by_reason.items():
        cure = CURES.get(reason, "")
        entries.append({"why": reason, "count": counts.total(), "metrics": dict(counts.most_common()), "cure": cure})
    return sorted(entries, key=lambda entry: -entry["count"])
