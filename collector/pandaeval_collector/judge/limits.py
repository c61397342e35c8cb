"""How fast a judge may be asked: concurrency that follows the provider, calls and tokens per minute, and money."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from aiolimiter import AsyncLimiter

from pandaeval_collector.judge.call import Answer, Call, CallFailedError, Failure, OverBudgetError
from pandaeval_collector.judge.neutral import tokens

_BURST = 20
"""A bucket holds a twentieth of a minute's allowance: no window of 60 s ever sees more than 1.05 of it."""
_CONGESTED = frozenset({Failure.RATE_LIMIT, Failure.TIMEOUT, Failure.UNAVAILABLE, Failure.COOLDOWN})
_MAYBE_BILLED = frozenset({Failure.TIMEOUT, Failure.CRASHED})


class Gate:
    """Calls at a time, between 1 and ``most``: one more per round of successes, half as many after congestion, at most
    once a round (AIMD). On one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(min(2, most))
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._narrowed_at = float("-inf")

    @property
    def width(self) -> int:
        """How many calls may be under way."""
        return int(self._width)

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Waits for a place, in order of arrival."""
        while self._inside >= self.width:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                self._wake()
                raise
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._wake()

    def succeeded(self) -> None:
        self._width = min(float(self._most), self._width + 1.0 / self._width)
        self._wake()

    def congested(self, began: float, now: float) -> None:
        """A call that began at ``began`` failed; those that began before the last narrowing tell nothing new."""
        if began > self._narrowed_at:
            self._narrowed_at = now
            self._width = max(1.0, self._width / 2)

    def _wake(self) -> None:
        free = self.width - self._inside
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1


class PerMinute:
    """A leaky bucket: ``limit`` units a minute in any window, within a twentieth; ``None``: as many as you like."""

    def __init__(self, limit: int | None) -> None:
        self._capacity = 0.0
        self._bucket: AsyncLimiter | None = None
        if limit is not None:
            self._capacity = max(1.0, limit / _BURST)
            self._bucket = AsyncLimiter(self._capacity, 60.0 * self._capacity / limit)

    async def take(self, amount: float) -> None:
        """Waits until ``amount`` fits; more than the bucket holds is taken in several draughts."""
        while self._bucket is not None and amount > 0:
            draught = min(amount, self._capacity)
            await self._bucket.acquire(draught)
            amount -= draught


class Purse(Protocol):
    """The day's money, kept in the store."""

    async def reserve(self, usd: float) -> float | None:
        """When it was set aside (Unix seconds), or ``None`` when there is not enough left."""
        ...

    async def settle(self, reserved: float, usd: float, reserved_at: float) -> None: ...


class Provider(Protocol):
    """What does the calls, and what they cost: US dollars per token in and out."""

    prices: dict[str, tuple[float, float]]

    async def start(self) -> None: ...
    async def complete(self, call: Call) -> Answer: ...


class LimitedCaller:
    """A caller within the limits. On one event loop."""

    def __init__(
        self, provider: Provider, concurrency: int, rpm: int | None, tpm: int | None, purse: Purse | None
    ) -> None:
        self._provider, self._purse = provider, purse
        self.gate = Gate(concurrency)
        self._calls, self._tokens = PerMinute(rpm), PerMinute(tpm)

    async def complete(self, call: Call) -> Answer:
        """Raises :class:`CallFailedError`, or :class:`OverBudgetError` before anything is sent."""
        async with self.gate.entered():
            await self._provider.start()
            expected = sum(tokens(message["content"]) for message in call.messages)
            await self._calls.take(1)
            await self._tokens.take(expected + call.max_tokens // 4)
            answer = await self._paid(call, _price(self._provider.prices, call, expected))
        # What the Router tried again, and what was longer than expected, is paid back before the next call.
        await self._calls.take(answer.retries)
        await self._tokens.take(answer.tokens - expected - call.max_tokens // 4)
        return answer

    async def _paid(self, call: Call, price: float) -> Answer:
        purse = self._purse
        if purse is None:
            return await self._watched(call)
        reserved_at = await purse.reserve(price)
        if reserved_at is None:
            raise OverBudgetError
        cost = price
        try:
            answer = await self._watched(call)
            cost = answer.cost_usd
        except CallFailedError as error:
            cost = price if error.failure in _MAYBE_BILLED else 0.0
            raise
        finally:
            await asyncio.shield(purse.settle(price, cost, reserved_at))
        return answer

    async def _watched(self, call: Call) -> Answer:
        began = time.monotonic()
        try:
            answer = await self._provider.complete(call)
        except CallFailedError as error:
            if error.failure in _CONGESTED:
                self.gate.congested(began, time.monotonic())
            raise
        self.gate.succeeded()
        return replace(answer, seconds=time.monotonic() - began)


def _price(prices: Mapping[str, tuple[float, float]], call: Call, expected: int) -> float:
    """The most that a call can cost, as far as its length is known."""
    into, out = prices.get(call.model, (0.0, 0.0))
    return expected * into + call.max_tokens * out
