"""Puts the questions of a check to a model, through the collector's own process, prompts and reading of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.jobs.anew import Forgetful, asked, pay, said
from pandaeval_collector.judge.call import Caller, CallFailedError, CallFailure, OverBudgetError
from pandaeval_collector.judge.desk import AnswerCost, Desk, Judge
from pandaeval_collector.judge.known import FREE, Price
from pandaeval_collector.judge.neutral import tokens
from pandaeval_collector.judge.prompt import SYSTEM
from pandaeval_collector.judge.rubric import Guidance
from pandaeval_collector.scoring.metric import Texts, TraceContext
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.judge_check.plan import METRIC, CheckItem

_CONTEXT = TraceContext(Texts({}, (), "none", None), 0.5)
_TRIES, _LONGEST_S = 3, 30.0
_QUESTION, _ANSWER = 600, 150
"""Tokens of a question with its criteria, and of an answer, for the estimate: rather too many."""
_PASSING = frozenset({CallFailure.RATE_LIMIT, CallFailure.COOLDOWN, CallFailure.TIMEOUT, CallFailure.UNAVAILABLE})


class JudgeAwayError(Exception):
    """The model cannot be asked at all; ``cause`` is the error of the last call."""

    def __init__(self, cause: CallFailedError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question. ``value``: the judge's score, 0..1; ``why``: why there is none; ``failed``: why the
    question could not be asked."""

    item: CheckItem
    value: float | None = None
    why: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a check will take, if no reply has to be corrected. ``usd``: ``None`` where the price is not known."""

    calls: int
    tokens: int
    usd: float | None


def forecast(items: Sequence[CheckItem], price: Price | None) -> Forecast:
    """Estimates the calls, tokens and costs of the questions; ``price``: of a token."""
    sent = sum(item.pack.tokens + tokens(SYSTEM) + _QUESTION for item in items)
    got = _ANSWER * len(items)
    usd = None if price is None or price == FREE else sent * price.into + got * price.out
    return Forecast(len(items), sent + got, usd)


class CheckRun:
    """Asks one model the questions of a check. ``replies`` grows as they come, also of an interrupted check."""

    def __init__(
        self,
        caller: Caller,
        model: str,
        on_reply: Callable[[int], None] | None = None,
        at_a_time: int = 8,
        guidance: Guidance = Guidance(),  # noqa: B008 - it never changes
    ) -> None:
        self._guidance = guidance
        self._caller, self._model, self._places = caller, model, asyncio.Semaphore(at_a_time)
        self._on_reply = on_reply or (lambda done: None)
        self._metric = registry()[METRIC]
        self.replies: list[Reply] = []
        self.spent = AnswerCost()

    async def run(self, items: Sequence[CheckItem]) -> None:
        """Asks all questions, the first one alone. Raises :class:`JudgeAwayError` when the first call fails or the
        provider denies access. Ends early, without an error, when the day's budget is used up."""
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
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._places:
                    self.replies.append(await self._asked(item))
                return
            except CallFailedError as error:
                if error.failure is CallFailure.DENIED:
                    raise JudgeAwayError(error) from error
                if attempt == _TRIES or error.failure not in _PASSING:
                    if not self.replies:
                        raise JudgeAwayError(error) from error
                    self.replies.append(Reply(item, failed=error.failure.value))
                    return
                await asyncio.sleep(min(error.retry_after or 2.0 ** (attempt - 1), _LONGEST_S))

    async def _asked(self, item: CheckItem) -> Reply:
        judge = Judge(Desk(self._caller, Forgetful()), item.pack, self._model, guidance=self._guidance)
        try:
            known = self._metric.evaluate(item.trace, _CONTEXT)
            finding = known or await asked(self._metric, item.trace, judge)
        finally:
            pay(self.spent, judge.spent)
            self.spent.model = judge.spent.model or self.spent.model
        match finding:
            case Score():
                return Reply(item, said(finding))
            case Unscored():
                return Reply(item, why=finding.why.value)
        return Reply(item, why="not asked")
