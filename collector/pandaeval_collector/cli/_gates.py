"""Does a run pass? Only thresholds that somebody configured can fail it, and silence passes only where it is explained.

A gate's value is the mean of what was scored. What was never captured (``no_content``) and what was left out on purpose
(``not_sampled``) is no failure to score: it counts in no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class _Counts:
    scored: int
    assumed: int
    whys: Mapping[str, int]

    @property
    def missing(self) -> int:
        """The number of results that should have a score and have none."""
        return sum(count for why, count in self.whys.items() if why not in _NOT_EXPECTED)

    @property
    def worst_why(self) -> str:
        """The most frequent reason for a missing score; one that is not expected goes before an expected one."""
        return max(self.whys, key=lambda why: (why not in _NOT_EXPECTED, self.whys[why]))


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
        counts = _counts(outcomes, key)
        if counts.scored or counts.assumed or counts.whys:
            passed, text = _held(threshold, max_unscored, counts, means.get(key, 0.0))
        else:
            passed, text = silent(key)
        lead = f"{key} (threshold {threshold:g})"
        shown = () if passed else tuple(examples(key))
        found.append(GateOutcome(key, passed, f"{lead}: {text}" if text else "", shown))
    return found


def _held(threshold: float, max_unscored: float, counts: _Counts, mean: float) -> tuple[bool, str]:
    if not counts.scored:
        return _without_score(counts)
    failures = list(_failures(threshold, max_unscored, counts, mean))
    return not failures, "; ".join(failures)


def _without_score(counts: _Counts) -> tuple[bool, str]:
    """Returns whether a gate without any score passes, and why: it does if all of its results are assumed."""
    if not counts.whys:
        return True, f"passes unmeasured: there was nothing to evaluate in {many(counts.assumed, 'result')} (assumed)"
    whys = ", ".join(f"{why} {count}" for why, count in sorted(counts.whys.items(), key=lambda item: -item[1]))
    return False, f"none of {many(sum(counts.whys.values()), 'result')} has a score ({whys}){_cure(counts.worst_why)}"


def _failures(threshold: float, max_unscored: float, counts: _Counts, mean: float) -> Iterator[str]:
    if mean < threshold - TOLERANCE:
        yield (
            f"the mean of {many(counts.scored, 'score')} is {mean:.4f}; --format json shows all of them, "
            "--format html leads to what went wrong"
        )
    expected = counts.scored + counts.missing
    if counts.missing > max_unscored * expected:
        yield (
            f"{counts.missing} of {expected} results have no score ({counts.missing / expected:.0%}, and "
            f"gates.max_unscored is {max_unscored:.0%}), most for {counts.worst_why}{_cure(counts.worst_why)}"
        )


def _counts(outcomes: Outcomes, key: str) -> _Counts:
    of_key = {(kind, why): count for (name, kind, why), count in outcomes.items() if name == key and count}
    whys = {why: count for (kind, why), count in of_key.items() if kind == "unscored"}
    return _Counts(_sum(of_key, "scored"), _sum(of_key, "assumed"), whys)


def _sum(of_key: Mapping[tuple[str, str], int], outcome: str) -> int:
    return sum(count for (kind, _), count in of_key.items() if kind == outcome)


def _cure(why: str) -> str:
    cure = _CURES.get(why)
    return f": {cure}" if cure else ""
