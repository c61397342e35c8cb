"""What a run does not tell: whether tasks succeeded, where no judge was asked, and what the other metrics know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

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
_CHECKS = re.compile(r"rule checks: \d+ of \d+ failed; task success: not judged")
"""How the reason of ``agent_reliability`` begins where no judge had a part."""
_SAID = {"problem_found": "problem found", "no_problem_found": "no problem found"}


def is_judged(outcomes: Outcomes) -> bool:
    """Whether the success of any task was judged."""
    return any(count for (key, outcome, _), count in outcomes.items() if (key, outcome) == (TASK, "scored"))


def unasked(outcomes: Outcomes, traces: int, judge: str | None) -> str:
    """Sentences for people: what was not judged and why, and what is known without. Empty where all was judged.
    ``traces``: how many runs there are; ``judge``: the model that is configured."""
    if not traces:
        return ""
    scored = sum(count for (key, outcome, _), count in outcomes.items() if (key, outcome) == (TASK, "scored"))
    if scored:
        return "" if scored >= traces else f"Task success was judged in {scored:,} of {traces:,} runs."
    return f"Task success was not judged: {_why(outcomes, judge)}.{_known(outcomes)}"


def _why(outcomes: Outcomes, judge: str | None) -> str:
    if judge is None:
        return "no model is configured (--model, or judge.model)"
    whys = Counter({why: count for (key, outcome, why), count in outcomes.items() if key == TASK and why})
    if whys:
        return "no run has a verdict (" + ", ".join(f"{why} {count}" for why, count in whys.most_common()) + ")"
    return "task_completion was not asked (metrics.enabled, or judge.only leaves these runs out)"


def _known(outcomes: Outcomes) -> str:
    asked = {key for key, _, _ in outcomes}
    tells = [told for key, told in _TELLS.items() if key in asked]
    if not tells:
        return ""
    told = tells[0] if len(tells) == 1 else f"{', '.join(tells[:-1])} and {tells[-1]}"
    return f" What was scored without a model finds {told}; not whether a task was done, or an answer is right."


def is_inline(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a session's score rests on metrics without a model alone."""
    return (metadata or {}).get("basis") == INLINE


def verdict(label: str | None) -> str:
    """What such a score says, in a word or three."""
    return _SAID.get(label or "", (label or "").replace("_", " "))


def spelled_out(label: str | None, reason: str) -> str:
    """What such a score says and does not say: how many of its rule checks failed, by its ``reason``."""
    told = _CHECKS.match(reason)
    return told[0] if told is not None else f"{verdict(label)} by rule checks; task success: not judged"
