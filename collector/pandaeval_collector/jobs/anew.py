"""Puts a metric's own question once more, with what leads to it (the task, the plan) as it was found the first time:
for votes and for other models that are tried."""

from __future__ import annotations

import asyncio
import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import AnswerCost, Desk, Judge, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Guidance, Rubric, Verdict
from pandaeval_collector.scoring.evaluator import Question
from pandaeval_collector.scoring.metric import Metric

V = TypeVar("V", bound=Verdict)


class Again(Judge):
    """Asks the rubric ``name``, alone or in a call with others, of the judge ``anew``, and all other rubrics (task,
    plan) of the judge ``before``."""

    def __init__(self, before: Judge, anew: Judge, name: str) -> None:
        self._before, self._anew, self._name = before, anew, name
        self._pack, self.together, self.spent = before.pack, before.together, anew.spent

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None) -> V:
        own = rubric.name == self._name or bool(rubric.parts)
        return await (self._anew if own else self._before).ask(rubric, given)


async def asked(metric: Metric[Any, Any], subject: Any, judge: Judge) -> Finding | None:
    """Asks a judged metric; a reply that holds no verdict is unscored. Raises ``CallFailedError`` and
    ``OverBudgetError``."""
    assert metric.ask is not None
    try:
        return await metric.ask(subject, judge)
    except NoVerdictError as error:
        return Unscored(error.why, str(error))


def anew(desk: Desk, pack: Pack, model: str, name: str, guidance: Guidance) -> Judge:
    """Makes another judge of the same run. ``name`` gives it fences unlike those of other judges, and answers that are
    remembered apart from theirs."""
    nonce = hashlib.sha256(f"{name} {pack.nonce}".encode()).hexdigest()[: len(pack.nonce)]
    text, digest = pack.text.replace(pack.nonce, nonce), f"{pack.digest} {name}"
    return Judge(desk, replace(pack, nonce=nonce, text=text, digest=digest), model, guidance=guidance)


def said(finding: Score) -> float:
    """Returns the judge's own score, 0..1, before facts counted by code lowered it."""
    judged = finding.metadata.get("judged")
    return float(judged) if isinstance(judged, int | float) and 0.0 <= judged <= 1.0 else finding.value


def pay(account: AnswerCost, other: AnswerCost) -> None:
    """Adds the costs of ``other`` to ``account``."""
    for name in ("calls", "tokens", "prompt", "completion", "cached", "cost_usd"):
        setattr(account, name, getattr(account, name) + getattr(other, name))


# Lets a judge give several verdicts on one question and takes the median: one odd verdict changes little.
#
# Each vote is given behind fences of its own and without the others in memory; what leads to the question (task, plan)
# is found once. Votes are remembered one by one, so that a try after a failed call pays only for those that are
# missing.
_NotGiven = CallFailedError | OverBudgetError
_Ballot = Finding | None | NoVerdictError | _NotGiven


class Votes:
    """Asks for ``number`` votes on each question; with 1, the only verdict counts. On one event loop."""

    def __init__(self, desk: Desk, number: int) -> None:
        self._desk, self._number = desk, number

    async def verdict(self, question: Question, subject: Any, judge: Judge) -> Finding | None:
        """Returns the metric's finding by all votes, and adds the costs of all to ``judge``'s account. Raises what
        :func:`counted` raises."""
        if question.metric.ask is None:
            return None
        if self._number == 1:
            return await question.metric.ask(subject, judge)
        first = await self._cast(question, subject, judge)
        if isinstance(first, _NotGiven):
            raise first
        if not isinstance(first, Score | NoVerdictError):
            return first  # code said it; more votes would say the same
        others = [
            anew(self._desk, judge.pack, question.model, f"vote {number}", question.guidance)
            for number in range(2, self._number + 1)
        ]
        name = question.metric.asks
        given = await asyncio.gather(*(self._cast(question, subject, Again(judge, each, name)) for each in others))
        for each in others:
            pay(judge.spent, each.spent)
        return counted([first, *given], question.passes_from)

    async def _cast(self, question: Question, subject: Any, judge: Judge) -> _Ballot:
        assert question.metric.ask is not None
        try:
            return await question.metric.ask(subject, judge)
        except (NoVerdictError, CallFailedError, OverBudgetError) as error:
            return error


def counted(ballots: Sequence[_Ballot], threshold: float) -> Score:
    """Returns the median of the votes that have a score (of an even number, the mean of the middle two), with reason
    and metadata of the first vote nearest to it. Raises the :class:`NoVerdictError` of any vote that suspects an
    injection. Where no majority of all votes has a score, raises the error of a call that failed, so that it is tried
    again, or else a :class:`NoVerdictError` of kind ``invalid_verdict``."""
    for each in ballots:
        if isinstance(each, NoVerdictError) and each.why is Why.INJECTION_SUSPECTED:
            raise each
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
