"""Possible conclusions of a metric; "no data" is a type, never a number. ``None``: the metric does not apply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")


class Why(StrEnum):
    """Why a due evaluation has no score."""

    JUDGE_FAILED = "judge_failed"
    INVALID_VERDICT = "invalid_verdict"
    TIMEOUT = "timeout"
    OVER_BUDGET = "over_budget"
    NOT_SAMPLED = "not_sampled"
    INCOMPLETE_TRACE = "incomplete_trace"
    NO_CONTENT = "no_content"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    METRIC_ERROR = "metric_error"
    INJECTION_SUSPECTED = "injection_suspected"
    SHUTDOWN = "shutdown"
    SIMULATOR_FAILED = "simulator_failed"


class NotCapturedError(Exception):
    """A metric reads content that was not captured: the result is ``unscored(no_content)``, with the text as reason."""


# Nobody changes a finding. It is not declared frozen because setting the fields of a frozen object takes four times as
# long, and there are many.


@dataclass(slots=True)
class Score:
    """A judgement.

    ``value``: 0..1, 1 is best. ``raw``: native value on ``scale``, such as ``"1-5"``; the threshold applies to it.
    ``coverage``: share 0..1 of the expected evidence. ``failed``: the result fails, whatever its threshold; ``label``
    then names the failure. ``span_ids``: spans that the finding names. Raises ``ValueError`` if ``value`` is outside
    0..1.

    >>> Score(0.8, "four of five calls were right", raw=4.0, scale="0-5").value
    0.8
    """

    value: float
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw: float | None = None
    scale: str | None = None
    label: str | None = None
    failed: bool = False
    coverage: float = 1.0
    span_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score lies in 0..1, not {self.value!r}")


@dataclass(slots=True)
class Assumed:
    """The value 1.0, which a source prescribes if there is no evidence."""

    reason: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    value: float = 1.0


@dataclass(slots=True)
class Unscored:
    """No judgement, and why. Counts neither as passed nor as failed."""

    why: Why
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    coverage: float = 1.0


Finding = Score | Assumed | Unscored


def ends(scale: str) -> tuple[float, float]:
    """Return worst and best of a scale such as ``"1-5"``; ``""`` is 0..1. Raises ``ValueError`` otherwise."""
    if not scale:
        return 0.0, 1.0
    match = _SCALE.fullmatch(scale)
    if match is None or float(match[1]) >= float(match[2]):
        raise ValueError(f'scale {scale!r}: write its worst and its best end, as in "1-5", or leave it out for 0..1')
    return float(match[1]), float(match[2])
