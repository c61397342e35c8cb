"""Ratings from 1 to 5 by a guide: the shape of a judge's answer, and the score that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.parts import QuestionPart
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metric import Metric, TurnContext, TurnMetric
from pandaeval_collector.scoring.metrics.trace._verdicts import undetermined
from pandaeval_collector.scoring.metrics.turn._about import ABOUT, answers, asked, unsaid
from pandaeval_collector.scoring.metrics.turn._sent import templates

SCALE, LEAST, MOST = "1-5", 1.0, 5.0


class Rating(BaseModel):
    """``rating``: 1..5, 5 is best; ``None``: the record does not suffice to tell."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    reason: Annotated[str, Field(max_length=600)] = Field(
        description="What in the answer decides, in one or two sentences."
    )
    rating: Annotated[float, Field(ge=LEAST, le=MOST)] | None = Field(
        description="A whole number, by the guide. Null if the record does not suffice to tell."
    )


def rated(
    name: str,
    about: str,
    version: str,
    question: str,
    needs: str,
    criteria: str,
    before_asking: Callable[[TurnView, TurnContext], Finding | None] = unsaid,
) -> TurnMetric:
    """A metric that has a judge rate the answer of a turn from 1 to 5 by ``criteria``, which end in a guide."""
    part = QuestionPart(name, version, ABOUT, criteria, Rating, _check)

    async def ask(view: TurnView, judge: Judge) -> Finding | None:
        return await rating(part, view, judge)

    return Metric(
        level="turn",
        name=name,
        kind="llm",
        version=version,
        threshold=3.0,
        scale=SCALE,
        question=question,
        about=about,
        needs=needs,
        evaluate=before_asking,
        ask=ask,
        applies=answers,
        part=part,
        rubrics=templates(part),
        unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    )


def _check(rating: Rating, given: Mapping[str, Any]) -> str | None:
    return None if any(map(str.isalnum, rating.reason)) else "reason: it says nothing"


async def rating(part: QuestionPart[Rating], view: TurnView, judge: Judge) -> Finding:
    """The score of a turn from the judge's rating: 1 to 5 becomes 0 to 1."""
    found = await asked(part, view, judge)
    if found.rating is None:
        return undetermined(found.reason)
    value = (found.rating - LEAST) / (MOST - LEAST)
    return Score(value, found.reason, about(view), raw=found.rating, scale=SCALE)


def about(view: TurnView) -> dict[str, Any]:
    """What the metadata of every result about a turn say: which turn of its conversation it is."""
    return {"turn": view.turn_index}
