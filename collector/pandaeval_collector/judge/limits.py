"""Limits of judge calls: adaptive concurrency, calls and tokens per minute, and money."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError, Permit
from pandaeval_collector.judge.known_models import FREE, Price
from pandaeval_collector.judge.shorten import tokens

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

_STEADY, _BURST = 0.97, 0.025
"""Shares of a limit: steady use, and burst after a pause. Together slightly below the limit, for delayed requests that
arrive together.
"""
_CONGESTED = frozenset({CallFailure.RATE_LIMIT, CallFailure.TIMEOUT, CallFailure.UNAVAILABLE, CallFailure.COOLDOWN})
_USED = 4
"""Divisor of an answer's token limit for the expected use: most answers use at most a quarter."""
_MAYBE_BILLED = frozenset({CallFailure.TIMEOUT, CallFailure.CRASHED})

_FEWEST = 10
"""A reported count below a tenth of our count is rejected: our count is rarely twice the true count."""
_OVERHEAD = 4000
"""Tokens that a provider can add to a prompt, for its template and the schema."""
_MOST_OUT = 10
"""Multiple of ``max_tokens`` up to which a count is believed: some providers do not limit thinking."""
_CHEAPEST, _DEAREST = 0.01, 10.0
"""Lowest and highest believed cost, as multiples of the list price: caches are cheaper, service tiers dearer."""
_DEAREST_TOKEN = 0.01
"""Highest believed US dollars per token without a list price: ten times the dearest models."""


class AdaptiveLimit:
    """Limits parallel calls between 1 and ``most`` by AIMD: plus 1 per successful round, halved after congestion.

    For a single event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(min(2, most))
        self._inside = 0
        self._left = asyncio.Condition()
        self._narrowed_at = float("-inf")

    @property
    def width(self) -> int:
        return int(self._width)

    def resize(self, most: int) -> None:
        self._most = most
        self._width = min(self._width, float(most))

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Wait in order of arrival, and hold a place."""
        async with self._left:
            await self._left.wait_for(lambda: self._inside < self.width)
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            async with self._left:
                self._left.notify_all()

    def succeeded(self) -> None:
        self._width = min(float(self._most), self._width + 1.0 / self._width)

    def congested(self, began: float, now: float) -> None:
        """Halve the width after a failed call, unless the call began before the last halving."""
        if began > self._narrowed_at:
            self._narrowed_at = now
            self._width = max(1.0, self._width / 2)


class PerMinute:
    """A leaky bucket, full at first: at most ``limit`` units in any window of ``seconds``; ``None``: no limit.

    On one event loop.
    """

    def __init__(self, limit: float | None, seconds: float) -> None:
        self._owed = self._capacity = 0.0
        self._bucket: AsyncLimiter | None = None
        if limit is not None:
            from aiolimiter import AsyncLimiter  # in the extra judge, which recorded replies do not need

            self._owed = self._capacity = max(1.0, limit * _BURST)
            self._bucket = AsyncLimiter(self._capacity, seconds * self._capacity / (limit * _STEADY))

    async def take(self, amount: float) -> None:
        """Wait until ``amount`` fits; splits larger amounts."""
        amount, self._owed = amount + self._owed, 0.0
        while self._bucket is not None and amount > 0:
            draught = min(amount, self._capacity)
            await self._bucket.acquire(draught)
            amount -= draught

    def owe(self, amount: float) -> None:
        """Add ``amount`` to the next :meth:`take`, to correct an earlier estimate."""
        self._owed += max(0.0, amount)


class Purse(Protocol):
    async def reserve(self, usd: float) -> float | None:
        """Reserve US dollars; return the time in Unix seconds, or ``None`` if the budget is too small."""
        ...

    async def settle(self, reserved: float, spent: float, reserved_at: float) -> None: ...

    def share(self, part: float) -> None:
        """Limit this purse to a part, 0..1, of the day's budget."""
        ...


class Provider(Protocol):
    """Makes the calls, and knows list prices. ``timeout``: seconds per try."""

    prices: dict[str, Price]

    @property
    def timeout(self) -> float: ...
    async def start(self) -> None: ...
    async def complete(self, call: ModelCall, permit: Permit | None = None) -> ModelAnswer: ...


class LimitedCaller:
    """Makes calls within the limits, counting every try in advance. On one event loop."""

    def __init__(
        self,
        provider: Provider,
        concurrency: int,
        rpm: int | None,
        tpm: int | None,
        purse: Purse | None,
        minute: float = 60.0,
    ) -> None:
        """``rpm``, ``tpm``: requests and tokens per ``minute`` (in seconds)."""
        self._provider, self._purse = provider, purse
        self._limits = concurrency, rpm, tpm, minute
        self.gate = AdaptiveLimit(concurrency)
        self._calls, self._tokens = PerMinute(rpm, minute), PerMinute(tpm, minute)

    def share(self, part: float) -> None:
        """Use only this part, 0..1, of every limit, but at least one call at a time."""
        concurrency, rpm, tpm, minute = self._limits
        self.gate.resize(max(1, int(concurrency * part)))
        self._calls = PerMinute(None if rpm is None else rpm * part, minute)
        self._tokens = PerMinute(None if tpm is None else tpm * part, minute)
        if self._purse is not None:
            self._purse.share(part)

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Call the model within the limits.

        Raises :class:`CallFailedError`, or :class:`OverBudgetError` before sending.
        """
        async with self.gate.entered():
            await self._provider.start()
            expected = estimated(call, FREE).prompt_tokens
            bill, taken = Bill(self._purse, self._provider.timeout), 0

            async def permit(model: str, answered: bool, max_tokens: int) -> None:
                nonlocal taken
                taken = expected + max_tokens // _USED
                await self._calls.take(1)
                await self._tokens.take(taken)
                most = estimated(replace(call, max_tokens=max_tokens), self._provider.prices.get(model, FREE))
                await bill.another(most.cost_usd, answered)

            began = time.monotonic()
            try:
                answer = await self._provider.complete(call, permit)
                self.gate.succeeded()
                bill.answered(answer.cost_usd)
            except CallFailedError as error:
                if error.failure in _CONGESTED:
                    self.gate.congested(began, time.monotonic())
                bill.failed(maybe_billed=error.answered or error.failure in _MAYBE_BILLED)
                raise
            finally:
                seconds = time.monotonic() - began
                await asyncio.shield(bill.settle())
        self._tokens.owe(answer.tokens - taken)
        return replace(answer, seconds=seconds)


class Bill:
    """Reserves money for each try, and later replaces the reservations by the real cost."""

    def __init__(self, purse: Purse | None, timeout: float) -> None:
        self._purse, self._timeout = purse, timeout
        self._tries: list[tuple[float, float, float]] = []
        """For each try: the reserved amount, the cost (by default the same), and the time of the reservation."""
        self._began = 0.0

    async def another(self, most: float, answered: bool = False) -> None:
        """Reserve ``most`` US dollars for another try.

        ``answered``: the previous answer was unreadable. Raises :class:`OverBudgetError`.
        """
        self.failed(maybe_billed=answered or time.monotonic() - self._began >= self._timeout)
        if self._purse is not None:
            at = await self._purse.reserve(most)
            if at is None:
                raise OverBudgetError
            self._tries.append((most, most, at))
        self._began = time.monotonic()

    def failed(self, *, maybe_billed: bool) -> None:
        """Record a failed try. ``maybe_billed``: the provider may bill it, such as a late answer."""
        if not maybe_billed:
            self.answered(0.0)

    def answered(self, cost: float) -> None:
        if self._tries:
            most, _, at = self._tries[-1]
            self._tries[-1] = most, cost, at

    async def settle(self) -> None:
        for each in self._tries:
            assert self._purse is not None
            await self._purse.settle(*each)


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Tokens and US dollars of an answer. ``cached_tokens``: part of the prompt's, as reported."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    cached_tokens: int = 0


def estimated(call: ModelCall, price: Price) -> AnswerUsage:
    sent = sum(tokens(message["content"]) for message in call.messages)
    return AnswerUsage(sent, call.max_tokens, sent * price.into + call.max_tokens * price.out)


def believed(stated: Mapping[str, Any], call: ModelCall, text: str, price: Price) -> AnswerUsage:
    """Return an answer's usage.

    ``stated``: the provider's counts and cost, replaced by estimates if implausible. ``text``: of the answer.
    """
    estimate = estimated(call, price)
    # No tokenizer makes two tokens from one byte.
    shape = json.dumps(call.response_format) if call.response_format else ""  # sent or not
    most_in = sum(len(each["content"].encode(errors="replace")) for each in call.messages) + len(shape) + _OVERHEAD
    prompt, completion = stated.get("prompt_tokens"), stated.get("completion_tokens")
    if not _is_count(prompt, max(1, estimate.prompt_tokens // _FEWEST), most_in):
        return estimate
    if not _is_count(completion, max(1, tokens(text) // _FEWEST) if text else 0, _MOST_OUT * call.max_tokens):
        return estimate
    stated_cached = stated.get("cached_tokens")
    cached = stated_cached if _is_count(stated_cached, 0, prompt) else 0
    listed = (prompt - cached) * price.into + cached * price.cached + completion * price.out
    least, most = _CHEAPEST * listed, _DEAREST * listed if listed else _DEAREST_TOKEN * (prompt + completion)
    cost: Any = stated.get("cost_usd")
    if type(cost) not in (int, float) or not math.isfinite(cost) or not least <= cost <= most:
        cost = listed
    return AnswerUsage(prompt, completion, float(cost), cached)


def _is_count(value: Any, least: int, most: int) -> TypeGuard[int]:
    return type(value) is int and least <= value <= most
