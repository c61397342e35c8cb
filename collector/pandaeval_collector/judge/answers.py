"""Gets whole answers: behind the first call about a trace, and with more room where an answer was cut."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.judge.pack import Pack

_CACHED_FROM = 600
"""Tokens of a record; with the message of the system before it, providers cache no shorter beginning."""
_REMEMBER = 1024
"""Beginnings that were sent; providers forget them after some minutes."""


class NoVerdictError(Exception):
    """The judge answered, and there is no verdict in it; ``why`` tells what the result says."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(slots=True)
class AnswerCost:
    """What one metric's answers did cost: calls, tokens, US dollars, seconds of waiting for the model; who gave the
    last one, which may be a fallback; and what was shown to it.

    ``cached``: those of the tokens in ``prompt`` that the provider had in its cache; ``completion``: hidden reasoning
    included; ``pack``: digest of the record, ``""`` where nothing was asked; ``truncated``: its parts of which
    something was left out; ``suspected``: words in it speak to a judge."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    model: str = ""
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    pack: str = ""
    truncated: tuple[str, ...] = ()
    suspected: bool = False

    def add(self, answer: ModelAnswer) -> None:
        self.calls += 1
        self.tokens += answer.tokens
        self.cost_usd += answer.cost_usd
        self.seconds += answer.seconds
        self.prompt += answer.prompt_tokens
        self.completion += answer.completion_tokens
        self.cached += answer.cached_tokens

    def saw(self, pack: Pack) -> None:
        """Notes the record that a judge was shown, or whose verdict was remembered."""
        self.pack, self.truncated, self.suspected = pack.digest, pack.truncated, pack.suspected


class Answers:
    """The answers of one caller. On one event loop."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._first = caller, FirstCalls()

    async def first(self, call: ModelCall, pack: Pack, spent: AnswerCost) -> tuple[ModelCall, ModelAnswer]:
        """The answer to the first call of a question, behind the first one about its trace, and the call that was
        answered: one that was cut is made again with more room. Raises as :meth:`whole` does."""
        if pack.tokens < _CACHED_FROM:
            answer = await self._get(call, spent)
        else:
            async with self._first.behind(f"{call.model} {pack.nonce} {pack.digest}"):
                answer = await self._get(call, spent)
        if not answer.cut:
            return call, answer
        longer = replace(call, more=True)
        return longer, await self.whole(longer, spent)

    async def whole(self, call: ModelCall, spent: AnswerCost) -> ModelAnswer:
        """An answer that was not cut; a call that has no more room yet is made again with more. Raises
        :class:`NoVerdictError`, since what was cut is no verdict, whatever it holds, and what the caller raises."""
        answer = await self._get(call, spent)
        if answer.cut and not call.more:
            answer = await self._get(replace(call, more=True), spent)
        if answer.cut:
            raise NoVerdictError(
                Why.INVALID_VERDICT,
                f"the answer was cut at {answer.max_tokens} tokens, also with more room; raise judge.max_tokens, or "
                "lower judge.reasoning_effort",
            )
        return answer

    async def _get(self, call: ModelCall, spent: AnswerCost) -> ModelAnswer:
        answer = await self._caller.complete(call)
        spent.add(answer)
        spent.model = answer.model
        return answer


class FirstCalls:
    """Lets the first call of those that begin alike go ahead of the others: a provider has a beginning in its cache
    once a call with it was read, and calls about one trace that are made at the same time would all miss it. On one
    event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Event] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()

    @asynccontextmanager
    async def behind(self, beginning: str) -> AsyncIterator[None]:
        """Waits while the first call with this beginning is under way, however that ends."""
        if beginning in self._sent:
            yield
        elif (first := self._under_way.get(beginning)) is not None:
            await first.wait()
            yield
        else:
            async with self._first(beginning):
                yield

    @asynccontextmanager
    async def _first(self, beginning: str) -> AsyncIterator[None]:
        done = self._under_way[beginning] = asyncio.Event()
        try:
            yield
        finally:
            del self._under_way[beginning]
            self._sent[beginning] = None
            while len(self._sent) > _REMEMBER:
                self._sent.popitem(last=False)
            done.set()
