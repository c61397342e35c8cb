"""Lets a judge give several verdicts on one question and takes the median: one odd verdict changes little.

Each vote is given behind fences of its own and without the others in memory; what leads to the question (task, plan) is
found once. Votes are remembered one by one, so that a try after a failed call pays only for those that are missing.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.jobs.anew import Again, Apart, anew, pay
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Judge, Memory, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.scoring.evaluator import Question

_NotGiven = CallFailedError | OverBudgetError
_Ballot = Finding | None | NoVerdictError | _NotGiven


class Votes:
    """``number`` votes on each question; 1: the verdict is the only one. On one event loop."""

    def __init__(self, desks: Desks, memory: Memory, number: int) -> None:
        self._desks, self._memory, self._number = desks, memory, number

    async def verdict(self, question: Question, subject: Any, judge: Judge) -> Finding | None:
        """What the metric says by all votes, with the costs of all on ``judge``'s account. See :func:`counted` for what
        is raised."""
        asked = question.metric.ask
        if asked is None:
            return None
        if self._number == 1:
            return await asked(subject, judge)
        first = await self._cast(question, subject, judge)
        if isinstance(first, _NotGiven):
            raise first
        if not isinstance(first, Score | NoVerdictError):
            return first  # code said it; more votes would say the same
        others = [self._another(judge.pack, question, number) for number in range(2, self._number + 1)]
        name = question.metric.name
        given = await asyncio.gather(*(self._cast(question, subject, Again(judge, each, name)) for each in others))
        for each in others:
            pay(judge.spent, each.spent)
        return counted([first, *given], question.passes_from)

    def _another(self, pack: Pack, question: Question, number: int) -> Judge:
        name = f"vote {number}"
        return anew(self._desks, Apart(self._memory, name), pack, question.model, name, question.guidance)

    async def _cast(self, question: Question, subject: Any, judge: Judge) -> _Ballot:
        assert question.metric.ask is not None
        try:
            return await question.metric.ask(subject, judge)
        except (NoVerdictError, CallFailedError, OverBudgetError) as error:
            return error


def counted(ballots: Sequence[_Ballot], threshold: float) -> Score:
    """The median of the votes that are verdicts (of an even number the mean of the two in the middle), with reason and
    metadata of the vote next to it, the first of those that are as near.

    Raises the :class:`NoVerdictError` of a vote that suspects the run of instructing the judge: one is enough. Of fewer
    verdicts than a majority of all votes raises what kept a call from being made, so that it is tried again, or else a
    :class:`NoVerdictError` of kind ``invalid_verdict``.
    """
    suspicion = next((each for each in ballots if _suspects(each)), None)
    if isinstance(suspicion, NoVerdictError):
        raise suspicion
    valid = [each for each in ballots if isinstance(each, Score)]
    if len(valid) <= len(ballots) // 2:
        not_given = next((each for each in ballots if isinstance(each, _NotGiven)), None)
        if not_given is not None:
            raise not_given
        said = next((str(each) for each in ballots if isinstance(each, NoVerdictError)), "no vote has a score")
        raise NoVerdictError(Why.INVALID_VERDICT, f"{len(valid)} of {len(ballots)} votes are verdicts: {said}")
    scores = [each.value for each in valid]
    middle = statistics.median(scores)
    speaker = min(valid, key=lambda each: abs(each.value - middle))
    votes = {
        "scores": scores,
        "of": len(ballots),
        "spread": max(scores) - min(scores),
        "passed": sum(value >= threshold for value in scores),
    }
    raw = speaker.raw if speaker.raw is None else statistics.median([each.raw or 0.0 for each in valid])
    return replace(speaker, value=middle, raw=raw, metadata={**speaker.metadata, "votes": votes})


def _suspects(ballot: _Ballot) -> bool:
    return isinstance(ballot, NoVerdictError) and ballot.why is Why.INJECTION_SUSPECTED
