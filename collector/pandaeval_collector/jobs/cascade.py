"""Asks a cheap judge first, and the judge itself only where the cheap one is not sure enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.jobs.anew import pay
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.jobs.votes import Votes
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.cascade import CascadeStep
from pandaeval_collector.judge.desk import Judge, Memory, NoVerdictError
from pandaeval_collector.scoring.evaluator import Question


class Cascade:
    """``votes`` are the judge's own. On one event loop."""

    def __init__(self, desks: Desks, memory: Memory, votes: Votes) -> None:
        self._desks, self._memory, self._votes = desks, memory, votes
        self._steps = {} if desks.judge is None else desks.judge.cascade

    async def verdict(self, question: Question, subject: Any, judge: Judge) -> Finding | None:
        """Gives a verdict as :meth:`Votes.verdict` does. What the cheap judge said stands in the metadata
        (``cascade``); its costs are on ``judge``'s account, whose model it is where it decided. One that gives no
        verdict decides nothing."""
        step = self._steps.get(question.metric.key)
        if step is None or question.metric.ask is None:
            return await self._votes.verdict(question, subject, judge)
        first = Judge(
            self._desks.desk(self._memory),
            judge.pack,
            step.model,
            self._desks.secrets,
            question.metric.key,
            guidance=question.guidance,
        )
        said = await self._first(question, subject, first)
        if said is not None and step.decides(said.value):
            pay(judge.spent, first.spent)
            judge.spent.saw(judge.pack)
            judge.spent.model = first.spent.model or step.model
            return _noted(said, step, said, asked=False)
        finding = await self._votes.verdict(question, subject, judge)
        pay(judge.spent, first.spent)
        return _noted(finding, step, said, asked=True) if isinstance(finding, Score) else finding

    async def _first(self, question: Question, subject: Any, first: Judge) -> Score | None:
        assert question.metric.ask is not None
        try:
            found = await question.metric.ask(subject, first)
        except NoVerdictError as error:
            if error.why is Why.INJECTION_SUSPECTED:
                raise
            return None
        except (CallFailedError, OverBudgetError):
            return None
        return found if isinstance(found, Score) else None


def _noted(finding: Score, step: CascadeStep, said: Score | None, asked: bool) -> Score:
    about = {"model": step.model, "score": None if said is None else said.value, "asked": asked}
    return replace(finding, metadata={**finding.metadata, "cascade": about})
