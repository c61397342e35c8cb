"""Human verdicts on runs, and how to parse them.

Evaluation events of type ``human`` are ignored in any scope, because an agent could write them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

EVENT = "gen_ai.evaluation.result"
TYPE = "gen_ai.evaluation.evaluator.type"
HUMAN = "human"
MOST_COMMENT, MOST_ID = 1000, 256
PASSING = frozenset({"pass", "passed", "true", "yes", "y", "good", "correct", "ok", "1"})
FAILING = frozenset({"fail", "failed", "false", "no", "n", "bad", "incorrect", "wrong", "0"})
_HALF = 0.5 + 1e-9
"""A pass with a lower score, or a fail with a higher score, is a mistake."""


class LabelError(ValueError):
    """A bad label. The message has the error and the fix."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A human verdict, with ``score``, ``passed`` or both. ``unit``: trace id (32 hex digits) or session id.

    ``score``: 0..1, 1 is best. ``at``: Unix seconds, 0 if unknown. ``probability``: sampling probability of the run, if
    known.
    """

    unit: str
    metric: str
    score: float | None
    passed: bool | None
    annotator: str = ""
    at: float = 0.0
    comment: str = ""
    probability: float | None = None


def is_label(record: Any) -> bool:
    names = (pair.value.string_value for pair in record.attributes if pair.key == "event.name")
    if (record.event_name or next(names, "")) != EVENT:
        return False
    return any(pair.key == TYPE and pair.value.string_value.lower() == HUMAN for pair in record.attributes)


def verdict(score: Any, label: str) -> tuple[float | None, bool | None]:
    """Parse a person's score and verdict. Raises :class:`LabelError` if both are missing or contradict."""
    word = label.strip().lower()
    passed = True if word in PASSING else False if word in FAILING else None
    found = None if score is None or score == "" else _number(score)
    if found is None and passed is None:
        error_text = f"{label!r} is no verdict" if word else "there is neither a score nor a label"
        raise LabelError(f"{error_text}: write pass or fail, or a score from 0 to 1")
    if found is not None and passed is not None and abs(found - passed) > _HALF:
        raise LabelError(
            f"{label.strip()!r} and the score {found:g} contradict each other: leave one of them out, or put it right"
        )
    return found, passed


def _number(score: Any) -> float:
    try:
        found = float(score)
    except (TypeError, ValueError):
        found = math.nan
    if not 0.0 <= found <= 1.0:  # NaN is not
        raise LabelError(f"the score {str(score)[:40]!r} is no number from 0 to 1 (of 1 to 5 stars: (stars - 1) / 4)")
    return found
