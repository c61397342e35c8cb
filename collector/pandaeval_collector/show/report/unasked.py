"""What a run does not tell: whether tasks succeeded, where no judge was asked, and what the other metrics know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

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
