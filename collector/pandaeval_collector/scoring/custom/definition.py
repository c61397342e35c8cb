"""The validated definition of a judged custom metric."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pandaeval_collector.base.score import Score

# Converts a number on a metric's scale into a score.
UNIT = (0.0, 1.0)
Severity = Literal["low", "medium", "high", "critical"]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
UNKNOWN = "not determinable"
"""Answer of the judge if the record is not sufficient to choose a label."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def scaled(raw: float, scale: tuple[float, float], reason: str = "") -> Score:
    """Map a number on ``scale`` (worst, best) to a score 0..1; ``raw`` keeps the number.

    Raises ``ValueError`` outside the scale.
    """
    least, most = scale
    if not least <= raw <= most:
        raise ValueError(f"{raw!r} does not lie in the metric's scale {least:g}-{most:g}")
    if scale == UNIT:
        return Score(float(raw), reason)
    value = (raw - least) / (most - least)
    return Score(min(1.0, max(0.0, value)), reason, raw=float(raw), scale=written(scale))


def written(scale: tuple[float, float]) -> str:
    """Format a scale for metrics and results: ``"1-5"``, or ``""`` for 0..1."""
    return "" if scale == UNIT else f"{scale[0]:g}-{scale[1]:g}"


class LabelDefinition(BaseModel):
    """A label of a qualitative metric.

    ``score``: 0..1, 1 is best. ``severity``: makes results fail. ``meaning``: for the judge.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    score: Annotated[Number, Field(ge=0, le=1)]
    severity: Severity | None = None
    meaning: Annotated[str, Field(max_length=2000)] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_score(cls, given: Any) -> Any:
        return {"score": given} if isinstance(given, int | float) and not isinstance(given, bool) else given


class Scale(BaseModel):
    """The range of a quantitative metric; ``max`` is best."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min: Number
    max: Number

    @model_validator(mode="before")
    @classmethod
    def _from_ends(cls, given: Any) -> Any:
        """Accept ``[1, 5]`` for ``{min: 1, max: 5}``."""
        match given:
            case [least, most]:
                return {"min": least, "max": most}
        return given

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min >= self.max:
            raise ValueError(f"min ({self.min:g}) has to be less than max ({self.max:g}); max is best")
        return self


class Definition(BaseModel):
    """A judged custom metric, with either ``labels`` or a ``scale`` (default 0..1).

    ``criteria``: when an answer is good. ``threshold``: in the scale, or 0..1 for labels; default: the middle.
    ``model``: overrides ``judge.model``. ``version``: replaces :attr:`digest`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=100)]
    level: str = "trace"
    question: Text | None = None
    criteria: Text
    labels: Annotated[Mapping[str, LabelDefinition], Field(min_length=2, max_length=100)] | None = None
    scale: Scale | None = None
    threshold: Number | None = None
    model: Text | None = None
    version: Text | None = None
    needs: Text = "an answer or tool calls; a judge"

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.level in ("trial", "task"):
            raise ValueError("level: write trace, turn or session; a function grades trials (graders of a case file)")
        if (labels := self.labels) is not None:
            if self.scale is not None:
                raise ValueError("labels and scale exclude each other: keep labels for a choice, scale for a number")
            if UNKNOWN in labels:
                cure = "take it out, or rename it"
                raise ValueError(f"labels: {UNKNOWN!r} is reserved for undecided judges; {cure}")
            if any(not label.strip() for label in labels):
                raise ValueError("labels: one has no name; write a word, such as rude")
        least, most = self.range
        if not least <= self.least_passing <= most:
            raise ValueError(f"threshold: {self.least_passing:g} must be in the scale {least:g}-{most:g}")
        return self

    @property
    def range(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.scale is None else (self.scale.min, self.scale.max)

    @property
    def least_passing(self) -> float:
        return sum(self.range) / 2 if self.threshold is None else self.threshold

    @property
    def asks(self) -> str:
        return self.question or f"{self.name.replace('_', ' ').capitalize()}?"

    @property
    def digest(self) -> str:
        """12 hex digits that cover every field that affects a score."""
        hashed_fields = self.model_dump(include={"name", "level", "question", "criteria", "labels", "scale"})
        return hashlib.blake2b(orjson.dumps(hashed_fields), digest_size=6).hexdigest()
