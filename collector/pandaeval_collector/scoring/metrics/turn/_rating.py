"""Shared parts of turn metrics: questions, failure labels, and ratings from 1 to 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, create_model

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import Answer, QuestionPart
from pandaeval_collector.judge.turns import TurnView, stated
from pandaeval_collector.scoring.metric import JudgedTurnMetric, TurnContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    NOTHING_CAPTURED,
    has_any_content,
    has_meaningful_text,
    judged_metric,
    undetermined,
)

# Introduction and facts, which all questions about a turn share.
P = TypeVar("P", bound=BaseModel)

ABOUT = """
Judge one turn of a conversation: the user's last message, the agent's actions after it, and the answer. The earlier
conversation is context. It is known, and not judged again. The user's goal is given below as "goal". If it is missing,
use the user's wishes in this conversation. Profile and knowledge are given below if they are known. Answer each
question separately: an answer can be right and too long, or short and wrong.

- [with turn] The record shows the whole run. Judge only the turn whose number is given below as "turn".
"""
# Failures by label: the form of the judge's answer, the deciding label, and the score.
NO_FAILURE = "no failure"
SCALE, LEAST, MOST = "1-5", 1.0, 5.0


def turn_part(
    name: str,
    version: str,
    text: str,
    answer: type[P],
    check: Callable[[P, Mapping[str, Any]], str | None] | None = None,
) -> QuestionPart[P]:
    return QuestionPart(
        name=name,
        version=version,
        level="turn",
        about=ABOUT,
        text=text,
        answer=answer,
        check=check,
        given=lambda view, facts: {**stated(view), **_place(view), "calls": len(view.shown_calls)},
    )


def _place(view: TurnView) -> dict[str, int]:
    return {} if view.record is None else {"turn": view.record[1]}


def answers(view: TurnView) -> bool:
    return view.agent_message is not None or not (view.trace.error is not None or view.trace.ends_in_tool_call)


def answer_gap(view: TurnView, context: TurnContext) -> Finding | None:
    """Return why the turn's answer cannot be judged, else ``None``."""
    if not has_any_content(view.trace):
        return NOTHING_CAPTURED
    turn = view.trace.turns[0]
    if not has_meaningful_text(turn.user) and not turn.media_only:
        return Unscored(Why.NO_CONTENT, "the message of the user was not captured, or has no content")
    if not has_meaningful_text(turn.assistant):
        return Unscored(Why.NO_CONTENT, "the answer was not captured, or has no content")
    return None


def shows_nothing(view: TurnView, context: TurnContext) -> Unscored | None:
    """Return why the turn's actions cannot be judged, else ``None``."""
    if not has_any_content(view.trace):
        return NOTHING_CAPTURED
    if has_meaningful_text(view.agent_message) or view.tool_calls:
        return None
    return Unscored(Why.NO_CONTENT, "no answer with content and no tool call was captured")


class Labels(Answer):
    """``labels``: empty if unknown; ``calls``: the calls concerned."""

    reason: str
    labels: list[str]
    calls: Annotated[list[int], Field(max_length=20)]
    """Numbers of the calls in the record that a label concerns. Otherwise empty."""


def labels_shape(name: str, reason: str, labels: Iterable[str]) -> type[Labels]:
    known = [NO_FAILURE, *labels]
    some: Any = Annotated[list[Literal[tuple(known)]], Field(max_length=4)]  # type: ignore[misc]
    about = 'All labels that apply, or "no failure" alone. Empty if the record is not sufficient to decide.'
    fields: dict[str, Any] = {
        "reason": (Annotated[str, Field(max_length=600)], Field(description=reason)),
        "labels": (some, Field(description=about)),
    }
    return create_model(name, __base__=Labels, **fields)


def labels_error(found: Labels, given: Mapping[str, Any]) -> str | None:
    if NO_FAILURE in found.labels and len(set(found.labels)) > 1:
        return f'labels: "{NO_FAILURE}" stands alone'
    if missing := [number for number in found.calls if not 1 <= number <= given.get("calls", 0)]:
        return f"calls: there is no call {missing[0]}"
    return None


def labelled(labels: Sequence[str], order: Sequence[str], reason: str, about: dict[str, Any], **more: Any) -> Score:
    """Score labels: 1 without a failure, else 0 with the most severe label by ``order``.

    The metadata contains all labels.
    """
    found = [label for label in order if label in labels]
    metadata = {**about, "labels": found or [NO_FAILURE]}
    if not found:
        return Score(1.0, reason, metadata, **more)
    return Score(0.0, reason, metadata, label=found[0], failed=True, **more)


def failures(
    name: str,
    about: str,
    version: str,
    question: str,
    needs: str,
    text: str,
    answer: type[Labels],
    order: Sequence[str],
    check: Callable[[Labels, Mapping[str, Any]], str | None] = labels_error,
    by_code: Callable[[TurnView], Score | None] | None = None,
    **more: Any,
) -> JudgedTurnMetric:
    """Make a metric that finds failures in a turn, by a judge and ``by_code``. ``order``: as in :func:`labelled`."""
    part = turn_part(name, version, text, answer, check)

    async def ask(view: TurnView, judge: Judge) -> Finding | None:
        found, _ = await judge.answer(part, view)
        labels, reason, about = [*found.labels], found.reason, {"turn": view.turn_index}
        spans = [view.shown_calls[number - 1].span_id for number in found.calls]
        counted = None if by_code is None else by_code(view)
        if counted is not None:
            labels = [label for label in labels if label != NO_FAILURE]
            if not labels:
                return counted
            reason = f"{reason} {counted.reason}"
            labels += counted.metadata["labels"]
            spans, about = [*spans, *counted.span_ids], {**counted.metadata}
        if not labels:
            return undetermined(reason)
        return labelled(labels, order, reason, about, span_ids=tuple(dict.fromkeys(spans)))

    return judged_metric(JudgedTurnMetric, part, ask, question, about, needs, shows_nothing, by_code=by_code, **more)


class Rating(Answer):
    """``rating``: 1..5, 5 is best; ``None`` if unknown."""

    reason: Annotated[str, Field(max_length=600)]
    """The deciding part of the answer, in one or two sentences."""
    rating: Annotated[float, Field(ge=LEAST, le=MOST)] | None
    """A whole number, by the guide. Null if the record is not sufficient to decide."""


def judged_rating_metric(
    name: str,
    about: str,
    version: str,
    question: str,
    needs: str,
    criteria: str,
    before_asking: Callable[[TurnView, TurnContext], Finding | None] = answer_gap,
) -> JudgedTurnMetric:
    """Make a metric whose judge rates a turn's answer from 1 to 5 by ``criteria``."""
    part = turn_part(name, version, criteria, Rating)

    async def ask(view: TurnView, judge: Judge) -> Finding | None:
        found, _ = await judge.answer(part, view)
        if found.rating is None:
            return undetermined(found.reason)
        value = (found.rating - LEAST) / (MOST - LEAST)
        return Score(value, found.reason, {"turn": view.turn_index}, raw=found.rating, scale=SCALE)

    return judged_metric(
        JudgedTurnMetric, part, ask, question, about, needs, before_asking, threshold=3.0, scale=SCALE, applies=answers
    )
