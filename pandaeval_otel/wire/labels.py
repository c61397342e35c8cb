"""Reads a person's verdict on a run: a log event ``gen_ai.evaluation.result`` whose
``gen_ai.evaluation.evaluator.type`` is ``human``, unlike evaluators' results.

In any scope, it is neither content of its trace nor output of a collector: it reopens no trace and changes no score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base.names import bounded

EVENT = "gen_ai.evaluation.result"
TYPE = "gen_ai.evaluation.evaluator.type"
HUMAN = "human"
MOST_COMMENT, MOST_ID = 1000, 256
PASSING = frozenset({"pass", "passed", "true", "yes", "y", "good", "correct", "ok", "1"})
FAILING = frozenset({"fail", "failed", "false", "no", "n", "bad", "incorrect", "wrong", "0"})
_NAME, _SCORE = semconv.EVALUATION_NAME, semconv.EVALUATION_SCORE
_LABEL, _COMMENT = semconv.EVALUATION_LABEL, "gen_ai.evaluation.explanation"
_SESSIONS = (semconv.CONVERSATION_ID, semconv.SESSION_ID, semconv.PANDAEVAL_SESSION_ID)
_HALF = 0.5 + 1e-9
"""A pass with a lower score, or a fail with a higher one, is a slip of the pen."""


class LabelError(ValueError):
    """A bad label; the message says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A person's verdict. ``unit``: the id of a trace (32 hex digits) or session; ``metric``: its key. ``score`` lies
    in 0..1, 1 is best; ``passed``: the person's own word. At least one of the two is not ``None``. ``at``: time of the
    verdict in Unix seconds, 0 if unknown. ``probability``: the chance that the run was chosen for labelling, if
    known."""

    unit: str
    metric: str
    score: float | None
    passed: bool | None
    annotator: str = ""
    at: float = 0.0
    comment: str = ""
    probability: float | None = None


def is_label(record: Any) -> bool:
    """Returns whether an OTLP log record is a person's verdict."""
    names = (pair.value.string_value for pair in record.attributes if pair.key == "event.name")
    if (record.event_name or next(names, "")) != EVENT:
        return False
    return any(pair.key == TYPE and pair.value.string_value.lower() == HUMAN for pair in record.attributes)


def label_of(record: Any) -> HumanLabel:
    """Returns the label in a record that :func:`is_label` accepts. Raises :class:`LabelError`."""
    said = {
        pair.key: _KINDS[kind](getattr(pair.value, kind))
        for pair in record.attributes
        if (kind := pair.value.WhichOneof("value")) in _KINDS
    }
    named = _text(said.get(_NAME))
    if not named:
        raise LabelError(f"{_NAME} is missing: the metric that the verdict is about")
    trace_id = record.trace_id.hex() if len(record.trace_id) == 16 and any(record.trace_id) else ""
    level, _, bare = named.rpartition(".")
    level = level or _text(said.get("pandaeval.level")) or ("trace" if trace_id else "session")
    if level not in ("trace", "session"):
        raise LabelError(f"the level {level!r} is neither trace nor session")
    unit = trace_id if level == "trace" else next((id_ for key in _SESSIONS if (id_ := _text(said.get(key)))), "")
    if not unit:
        raise LabelError("it names no trace" if level == "trace" else f"it names no session ({_SESSIONS[0]})")
    score, passed = verdict(said.get(_SCORE), _text(said.get(_LABEL)))
    return HumanLabel(
        unit=bounded(unit, MOST_ID),
        metric=bounded(f"{level}.{bare}"),
        score=score,
        passed=passed,
        annotator=bounded(_text(said.get("gen_ai.evaluation.evaluator.id"))),
        at=(record.time_unix_nano or record.observed_time_unix_nano) / 1e9,
        comment=_text(said.get(_COMMENT))[:MOST_COMMENT],
    )


def verdict(score: Any, label: str) -> tuple[float | None, bool | None]:
    """Returns the score and whether it is a pass, from a person's input. An unknown word is ignored beside a score.
    Raises :class:`LabelError` if there is neither a score nor a known word, or the two contradict each other."""
    word = label.strip().lower()
    passed = True if word in PASSING else False if word in FAILING else None
    found = None if score is None or score == "" else _number(score)
    if found is None and passed is None:
        said = f"{label!r} is no verdict" if word else "there is neither a score nor a label"
        raise LabelError(f"{said}: write pass or fail, or a score from 0 to 1")
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


_KINDS: Mapping[str, Any] = {"string_value": str, "bool_value": float, "int_value": float, "double_value": float}


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
