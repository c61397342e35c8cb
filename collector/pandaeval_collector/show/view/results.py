"""A result's row, word, sentence and order, and its full form."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.base.result import NOTED, OPEN, SUSPECT, is_verdict
from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.show.report.text import pruned
from pandaeval_collector.show.view.texts import number, redacted_line
from pandaeval_collector.store.listed import NO_SCORE

INLINE = "inline"
"""``metadata.basis`` of a session's score that rests on metrics without a model."""
_CHECKS = re.compile(
    r"(?:no findings|\d+ findings?|only (?:suspicions were|an unsupported value was|a made-up value was) found)"
    r" by rules \([^()]*\); task success: not judged"
)
"""Beginning of the reason of ``agent_reliability`` without a judge."""


_ORDINARY = ("pass", "fail", "assumed")
"""Labels that only repeat whether a result passed."""
_NO_FAILURE = ("no_content", "not_sampled")
"""Reasons for a missing score without a failure of the judge."""
_HIGH, _ZERO = 0.5, 0.005
_SHORT_REASON, _MAX_SIGNALS = 240, 2000
_SHORT = ("metric", "outcome", "score", "signal", "success", "why")
_FULL = ("id", "raw", "scale", "threshold", "coverage", "trigger", "final", "tokens")
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "selected", "per_trace_signals", "for_judge")


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result in lists.

    ``metric``: key. ``signal``: 0..1 as in sessions (coherence calibrated), ``None`` if open, excused or unscored.
    ``inline``: a session score without a judge. ``final``: false while its session is open. ``step``: the first
    wrong step, named by a judge.
    """

    metric: str
    outcome: str
    score: float | None
    signal: float | None
    success: bool | None
    label: str | None = None
    why: str | None = None
    reason: str = ""
    agent: str = ""
    inline: bool = False
    final: bool = True
    step: str | None = None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> ResultView:
        return cls(
            f"{result['level']}.{result['metric']}",
            result["outcome"],
            result["score"],
            signal_of(result),
            result["success"],
            result.get("label"),
            result["why"],
            result["reason"],
            result.get("agent", ""),
            is_inline(result["metadata"]),
            result.get("final", True),
            result["metadata"].get("first_wrong_step"),
        )

    @property
    def failed(self) -> bool:
        return self.success is False

    @property
    def is_undecided(self) -> bool:
        if self.outcome == "unscored":
            return self.why not in _NO_FAILURE
        return self.label in OPEN or self.label == SUSPECT

    @property
    def agrees(self) -> bool:
        return self.score is None or not (self.score >= _HIGH if self.failed else self.success and self.score < _ZERO)

    @property
    def urgency(self) -> tuple[bool, float]:
        """The sort key: failed first, then by signal."""
        return not self.failed, NO_SCORE if self.signal is None else self.signal

    @property
    def word(self) -> str:
        """The outcome: ``pass``, ``fail``, ``assumed``, a label (``fail, loop``), or the reason without a score."""
        if self.outcome != "scored":
            return self.why or self.outcome
        words = []
        if self.success is not None:
            words.append("pass" if self.success else "fail")
        if self.label and self.label not in _ORDINARY:
            words.append(self.label)
        return ", ".join(words) or "no threshold"

    @property
    def fault(self) -> str:
        """The judge's fault, as ``missing thing at turn 2``."""
        return verdict(self.label) + (f" at {self.step}" if self.step else "")

    @property
    def replacement_text(self) -> str:
        """Words to replace a misleading number, or empty."""
        if self.outcome != "scored":
            return ""
        if self.signal is None:  # it explains, and is no verdict
            return self.label or ""
        if self.inline:
            return verdict(self.label)
        return ""

    def text(self, most: int) -> str:
        """Return ``trace.tool_loop 0.17 (fail): reason``, with ``most`` characters of reason."""
        score = f" {self.outcome if self.score is None else number(self.score)}" if self.agrees else ""
        word = redacted_line(self.word, 80)
        if not self.final:
            word += ", so far"
        return f"{redacted_line(self.metric, 80)}{score} ({word}): {redacted_line(self.reason, most)}"


def by_urgency(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sort JSON results: failed first, then by signal, then others."""
    ranked = sorted(results, key=lambda result: (*ResultView.of(result).urgency, result["metric"]))
    return [dict(result) for result in ranked]


def failing(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [result for result in results if result["success"] is False]


def undecided(results: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """Return the texts of verdicts on correctness that are open, or missing because of a failure."""
    verdicts = (ResultView.of(each) for each in results if each["metric"] == "correctness")
    return [each.text(most) for each in verdicts if each.is_undecided]


def is_inline(metadata: Mapping[str, Any] | None) -> bool:
    return (metadata or {}).get("basis") == INLINE


def verdict(label: str | None) -> str:
    """Return a label in one to three words."""
    return (label or "").replace("_", " ")


def spelled_out(label: str | None, reason: str) -> str:
    if match := _CHECKS.match(reason):
        return match[0]
    return f"{verdict(label)} by rule checks; task success: not judged"


def signal_of(result: Mapping[str, Any]) -> float | None:
    """Return a JSON result's score as in sessions (coherence calibrated), ``None`` if unscored, open or
    :data:`NOTED`.
    """
    if result["outcome"] != "scored" or not is_verdict(result) or result.get("label") in NOTED:
        return None
    return float(result["metadata"].get("calibrated", result["score"]))


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A JSON-ready result. ``short``: for lists. ``full``: for its trace or session."""

    short: dict[str, Any]
    full: dict[str, Any]


def shown(result: Mapping[str, Any], brief: bool = False) -> ShownResult:
    row, by = ResultView.of(result), result["evaluator"]
    short = {
        **{name: getattr(row, name) for name in _SHORT},
        "label": excerpt(row.label, 60),
        "word": excerpt(row.word, 80),
        "reason": excerpt(row.reason, _SHORT_REASON),
        "selected": result["metadata"].get("selected"),
    }
    metadata = {} if brief else result["metadata"]
    full = {
        "reason": clean(row.reason),
        **{name: result[name] for name in _FULL},
        "by": by["kind"],
        "model": by["model"],
        "version": by["version"],
        "cost": result["cost_usd"],
        "span": result["span_id"],
        "spans": result.get("span_ids"),  # missing in results of older releases
        "metadata": {key: pruned(held) for key, held in metadata.items() if key not in _SHOWN_ELSEWHERE},
    }
    if result["level"] == "session":
        signals = metadata.get("per_trace_signals") or {}  # by trace id: each trace's signals for the session score
        full["risks"] = dict(itertools.islice(signals.items(), _MAX_SIGNALS))
    return ShownResult(_present(short), _present(full))


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}
