"""Does a run pass? Only thresholds that somebody configured can fail it, and silence passes only where it is explained.

A gate's value is the mean of what was scored. What was never captured (``no_content``) and what was left out on purpose
(``not_sampled``) is no failure to score: it counts in no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pandaeval_collector.base.result import TOLERANCE
from pandaeval_collector.cli._output import many

_NOT_EXPECTED = frozenset({"no_content", "not_sampled"})
_CURES = {
    "no_content": "switch content capture on in the instrumentation",
    "not_sampled": "raise judge.sample",
    "incomplete_trace": "the root spans are missing: send whole traces, or set close.score_fragments",
    "insufficient_evidence": "too little of what it weighs was there: see the reasons of its results",
    "judge_failed": "see why the judge could not be asked: the key, the model's name, the network",
    "invalid_verdict": "the judge's answers do not hold: try a stronger model",
    "timeout": "raise judge.timeout, or lower judge.concurrency",
    "over_budget": "raise judge.daily_usd or judge.daily_tokens, or lower judge.sample",
    "metric_error": "the metric itself failed: see the reasons of its results",
    "injection_suspected": "the runs tell their judge how to judge: read them",
}

Outcomes = Mapping[tuple[str, str, str], int]
"""Counts of results by (metric key, outcome, why)."""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The outcome of one configured threshold. ``text``: a sentence for people, empty for one that was simply met.
    ``examples``: a line for each of the worst results that made it fail."""

    key: str
    passed: bool
    text: str = ""
    examples: tuple[str, ...] = ()


def gates(
    thresholds: Mapping[str, float],
    max_unscored: float,
    outcomes: Outcomes,
    means: Mapping[str, float],
    silent: Callable[[str], tuple[bool, str]] = lambda key: (True, "applies to nothing in the input"),
    examples: Callable[[str], Iterable[str]] = lambda key: (),
) -> list[GateOutcome]:
    """Returns the outcome of each of the ``thresholds`` (by metric key, in the metric's own scale, as the ``means``
    are).

    A gate fails when the mean of its scores is below the threshold; when nothing was scored, unless all of it is
    assumed; and when more than ``max_unscored`` (share, 0..1) of what should have a score has none. For a metric
    without results ``silent(key)`` gives whether that passes, and why; ``examples(key)`` lists its worst results.
    """
    found = []
    for key, threshold in thresholds.items():
        counts = {(kind, why): count for (name, kind, why), count in outcomes.items() if name == key and count}
        if counts:
            passed, text = _held(threshold, max_unscored, counts, means.get(key, 0.0))
        else:
            passed, text = silent(key)
        lead = f"{key} (threshold {threshold:g})"
        shown = () if passed else tuple(examples(key))
        found.append(GateOutcome(key, passed, f"{lead}: {text}" if text else "", shown))
    return found


def _held(
    threshold: float, max_unscored: float, counts: Mapping[tuple[str, str], int], mean: float
) -> tuple[bool, str]:
    """Returns whether a gate with results passes, and why not; without any score it does if all are assumed.
    ``counts``: by (outcome, why)."""
    scored = sum(count for (kind, _), count in counts.items() if kind == "scored")
    whys = {why: count for (kind, why), count in counts.items() if kind == "unscored"}
    # What should have a score goes before what is not expected to.
    worst = max(whys, key=lambda why: (why not in _NOT_EXPECTED, whys[why]), default="")
    cure = f": {_CURES[worst]}" if worst in _CURES else ""
    if not scored and not whys:
        assumed = many(sum(counts.values()), "result")
        return True, f"passes unmeasured: there was nothing to evaluate in {assumed} (assumed)"
    if not scored:
        told = ", ".join(f"{why} {count}" for why, count in sorted(whys.items(), key=lambda item: -item[1]))
        return False, f"none of {many(sum(whys.values()), 'result')} has a score ({told}){cure}"
    failures = []
    if mean < threshold - TOLERANCE:
        failures.append(
            f"the mean of {many(scored, 'score')} is {mean:.4f}; --format json shows all of them, "
            "--format html leads to what went wrong"
        )
    missing = sum(count for why, count in whys.items() if why not in _NOT_EXPECTED)
    if missing > max_unscored * (scored + missing):
        failures.append(
            f"{missing} of {scored + missing} results have no score ({missing / (scored + missing):.0%}, and "
            f"gates.max_unscored is {max_unscored:.0%}), most for {worst}{cure}"
        )
    return not failures, "; ".join(failures)
