"""Sends a check's questions to a model, with the collector's process and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.judge.call import Caller, CallFailedError, CallFailure, OverBudgetError
from pandaeval_collector.judge.client import AnswerCost, Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.judge.known_models import FREE, Price
from pandaeval_collector.judge.prompt import SYSTEM
from pandaeval_collector.judge.shorten import tokens
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.judge_check.questions import CORRECTNESS, METRIC, SESSION, CheckItem

_QUESTION, _ANSWER, _OF_SESSION = 600, 150, 3
"""Tokens of a question with its criteria, and of an answer, for a high estimate; and the factor for a question about a
session."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. ``value``: score 0..1. ``why``: why the score is missing. ``failed``: error of the call."""

    item: CheckItem
    value: float | None = None
    why: str = ""
    failed: str = ""
    spent: AnswerCost = field(default_factory=AnswerCost)


def forecast(items: Sequence[CheckItem], price: Price | None) -> tuple[int, float | None]:
    questions = len(items) + (_OF_SESSION - 1) * sum(item.kind == SESSION for item in items)
    sent = sum(item.pack.tokens + tokens(SYSTEM) for item in items) + _QUESTION * questions
    got = _ANSWER * questions
    usd = None if price is None or price == FREE else sent * price.into + got * price.out
    return sent + got, usd


class CheckRun:
    """Sends a check's questions. ``replies`` grows, also in an interrupted check."""

    def __init__(
        self,
        caller: Caller,
        model: str,
        on_reply: Callable[[int], None],
        at_a_time: int,
    ) -> None:
        self._caller, self._model, self._places = caller, model, asyncio.Semaphore(at_a_time)
        self._on_reply = on_reply
        self.replies: list[Reply] = []
        self.spent = AnswerCost()

    async def run(self, items: Sequence[CheckItem]) -> None:
        """Send all questions, the first alone.

        Raises ``CallFailedError`` if the first question fails or access is denied. Stops if the daily budget is used.
        """
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._one(items[0])
            self._on_reply(1)
            tasks += [asyncio.create_task(self._one(item)) for item in items[1:]]
            for done in asyncio.as_completed(tasks):
                await done
                self._on_reply(len(self.replies))
        except OverBudgetError:
            return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, item: CheckItem) -> None:
        try:
            async with self._places:
                self.replies.append(await self._asked(item))
        except CallFailedError as error:
            if error.failure is CallFailure.DENIED or not self.replies:
                raise
            self.replies.append(Reply(item, failed=error.failure.value))

    async def _asked(self, item: CheckItem) -> Reply:
        of_session = item.kind == SESSION
        judge = Judge(JudgeClient(self._caller), item.pack, self._model)
        subject = Conversation(item.trace, len(item.trace.turns)) if of_session else item.trace
        metric = registry()[CORRECTNESS if of_session else METRIC]
        assert isinstance(metric, JudgedMetric)
        try:
            finding = await metric.ask(subject, judge)
        except NoVerdictError as error:
            return Reply(item, why=error.why.value, spent=judge.spent)
        finally:
            self.spent.pay(judge.spent)
        match finding:
            case Score():
                return Reply(item, own_score(finding), spent=judge.spent)
            case Unscored():
                return Reply(item, why=finding.why.value, spent=judge.spent)
        return Reply(item, why="not asked")


def own_score(finding: Score) -> float:
    """Return the judge's own score, before facts counted by code lowered it."""
    judged = finding.metadata.get("judged")
    if isinstance(judged, int | float) and 0.0 <= judged <= 1.0:
        return float(judged)
    return finding.value
