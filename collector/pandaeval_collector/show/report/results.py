"""Results as pages and tables need them: a short form for lists, all of it for the trace or session that is looked at,
and what to do where there is no score."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.base.result import NOTED, is_verdict
from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.pipeline.line.hints import cure as capture_cure
from pandaeval_collector.show.report.text import pruned

# What a run does not tell: whether tasks succeeded, where no judge was asked, and what the other metrics know.
TASK = "trace.task_completion"
_TELLS = {
    "trace.response": "runs that failed or ended without an answer",
    "trace.tool_loop": "tool calls repeated in vain",
    "trace.loop_detection": "answers given again",
    "trace.grounding": "stated values that stand nowhere",
    "trace.coherence": "answers off the topic",
}
"""What each metric without a model finds."""

Outcomes = Mapping[tuple[str, str, str], int]
"""Counts of results by (metric key, outcome, why)."""
INLINE = "inline"
"""``metadata.basis`` of a session's score that rests on metrics without a model."""
_CHECKS = re.compile(r"(?:nothing found|\d+ findings?) by rules \([^()]*\); task success: not judged")
"""How the reason of ``agent_reliability`` begins where no judge had a part."""
_SAID = {"problem_found": "problem found", "no_problem_found": "no problem found"}


def judged(outcomes: Outcomes) -> int:
    """Counts the tasks whose success was judged."""
    return sum(count for (key, outcome, _), count in outcomes.items() if (key, outcome) == (TASK, "scored"))


def unasked(outcomes: Outcomes, traces: int, judge: str | None) -> str:
    """Returns sentences for people: what was not judged and why, and what is known without. Empty if all was judged.
    ``traces``: how many runs there are; ``judge``: the model that is configured."""
    scored = judged(outcomes)
    if not traces or scored >= traces:
        return ""
    if scored:
        return f"Task success was judged in {scored:,} of {traces:,} runs."
    whys = Counter({why: count for (key, outcome, why), count in outcomes.items() if key == TASK and why})
    if judge is None:
        reason = "no model is configured (--model, or judge.model)"
    elif whys:
        reason = "no run has a verdict (" + ", ".join(f"{why} {count}" for why, count in whys.most_common()) + ")"
    else:
        reason = "task_completion was not asked (metrics.enabled, or judge.only leaves these runs out)"
    asked = {key for key, _, _ in outcomes}
    tells = [text for key, text in _TELLS.items() if key in asked]
    known = f"{', '.join(tells[:-1])} and {tells[-1]}" if len(tells) > 1 else "".join(tells)
    without = f" What was scored without a model finds {known}; not whether a task was done, or an answer is right."
    return f"Task success was not judged: {reason}.{without if tells else ''}"


def is_inline(metadata: Mapping[str, Any] | None) -> bool:
    """Returns whether a session's score, by its metadata, rests on metrics without a model alone."""
    return (metadata or {}).get("basis") == INLINE


def verdict(label: str | None) -> str:
    """Returns the label of a score that rests on metrics without a model, in one to three words."""
    return _SAID.get(label or "", (label or "").replace("_", " "))


def spelled_out(label: str | None, reason: str) -> str:
    """Returns what such a score says and leaves open: what was found, by its ``reason``."""
    told = _CHECKS.match(reason)
    return told[0] if told is not None else f"{verdict(label)} by rule checks; task success: not judged"


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
    "raise the close.* limits, or set close.score_fragments: true to score such parts.",
    "insufficient_evidence": "Too little of what this metric builds on could be scored: mend the other entries first.",
    "metric_error": "A metric failed on this input. That is a defect of pandaeval: please report it with the reason.",
    "injection_suspected": "The run tries to instruct its judge. Read it with care: nothing in it was believed.",
    "shutdown": "The collector was stopped before it came to this. Evaluate it again.",
}
"""What to do about many results that could not be scored, by why."""


_SHORT_REASON, _MAX_SIGNALS = 240, 2000
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "per_trace_signals")


@dataclass(frozen=True, slots=True)
class ShownResult:
    """One metric's result about one unit, JSON-ready. ``short``: what lists show; ``full``: what only its own trace or
    session shows."""

    short: dict[str, Any]
    full: dict[str, Any]


def signal_of(said: Mapping[str, Any]) -> float | None:
    """Returns the score of a result's JSON object as sessions see it (coherence on its calibrated scale); ``None``
    where it has none, or no verdict, or is noted (:data:`NOTED`)."""
    ranks = said["outcome"] == "scored" and is_verdict(said) and said.get("label") not in NOTED
    return float(said["metadata"].get("calibrated", said["score"])) if ranks else None


def shown(said: Mapping[str, Any], brief: bool = False) -> ShownResult:
    """Returns a result's JSON object (:meth:`Result.to_dict`) in this form. ``brief``: without metadata, for lists."""
    short = {
        "metric": f"{said['level']}.{said['metric']}",
        "outcome": said["outcome"],
        "score": said["score"],
        "signal": signal_of(said),
        "success": said["success"],
        "label": excerpt(said["label"], 60),
        "why": said["why"],
        "reason": excerpt(said["reason"], _SHORT_REASON),
    }
    metadata, by = {} if brief else said["metadata"], said["evaluator"]
    full = {
        "reason": clean(said["reason"]),
        "raw": said["raw"],
        "scale": said["scale"],
        "threshold": said["threshold"],
        "coverage": said["coverage"],
        "by": by["kind"],
        "model": by["model"],
        "version": by["version"],
        "trigger": said["trigger"],
        "final": said["final"],
        "cost": said["cost_usd"],
        "tokens": said["tokens"],
        "span": said["span_id"],
        "spans": said.get("span_ids"),  # results of older releases have none
        "metadata": {key: pruned(held) for key, held in metadata.items() if key not in _SHOWN_ELSEWHERE},
        "id": said["id"],
    }
    if said["level"] == "session":
        signals = metadata.get("per_trace_signals") or {}  # by trace id, what each gave to its session's score
        full["risks"] = dict(itertools.islice(signals.items(), _MAX_SIGNALS))
    return ShownResult(_present(short), _present(full))


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}
