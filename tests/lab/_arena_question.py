"""A metric that asks the question of a text file (``ARENA_QUESTION``) at ``ARENA_LEVEL``: ``session`` or ``trace``.

The reply's ``correct``, ``sure`` and ``first_wrong_step`` become the verdict.

Scale: 0..1, how sure the reader is that all was handled correctly.
Source: the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector import Finding, Judge, Metric, Reason, Rubric, Score, Unscored, Verdict, Why
from pandaeval_collector.judge.conversation import Conversation

FILE, LEVEL = "ARENA_QUESTION", "ARENA_LEVEL"
NAME = "arena_question"


class Handled(Verdict):
    """``correct``: ``None`` if the record is insufficient."""

    reason: Reason
    first_wrong_step: Annotated[str, Field(max_length=40)] | None
    correct: bool | None
    sure: Annotated[float, Field(ge=0, le=100)] | None


RUBRIC = Rubric(
    name=NAME,
    version="1",
    text=Path(os.environ[FILE]).read_text(encoding="utf-8").strip() if FILE in os.environ else "(no question is named)",
    verdict=Handled,
)


def _before_asking(subject: Any, context: Any) -> Finding | None:
    return None


async def _ask(subject: Any, judge: Judge) -> Finding | None:
    trace = subject.trace if isinstance(subject, Conversation) else subject
    if not trace.turns:
        return Unscored(Why.NO_CONTENT, "nothing was said")
    verdict = await judge.ask(RUBRIC)
    if verdict.correct is None or verdict.sure is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the reader could not tell: {verdict.reason}")
    about = {"correct": verdict.correct, "first_wrong_step": verdict.first_wrong_step}
    return Score(verdict.sure / 100, verdict.reason, about)


METRIC: Metric = Metric(
    level=os.environ.get(LEVEL, "session"),
    name=NAME,
    kind="llm",
    version="1",
    threshold=0.5,
    question="What the file asks.",
    needs="what was said; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(RUBRIC,),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
