"""The templates that a metric of level turn may send, for people to read."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.judge.parts import QuestionPart, rubric_of
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.scoring.metrics.trace._task import TASK


def templates(part: QuestionPart[Any]) -> tuple[Rubric[Any], ...]:
    """The extraction of the task, and the metric's own question; in a call that several share, its criteria stand word
    for word under its name."""
    return TASK, rubric_of((part,))
