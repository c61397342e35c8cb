"""Rate, concurrency and budget limits of a judge."""

from __future__ import annotations

import asyncio
import contextlib
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from pandaeval_collector.jobs.setup import StoredPurse
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError, Permit
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.judge.limits import AdaptiveLimit, Bill, LimitedCaller
from pandaeval_collector.store import Store

CALL = ModelCall("m", [{"role": "user", "content": "x" * 396}], 40)  # 100 tokens in, 10 set aside for the answer
TEN = ModelAnswer("{}", 100, 10, 0.001, model="m")


class Provider:
    """Implements ``Provider``. ``says`` gives the outcome of an attempt, ``tries`` the attempts per call."""

    def __init__(self, says: Callable[[int], Awaitable[ModelAnswer]] | None = None, tries: int = 1) -> None:
        self.prices = {"m": Price(1e-5, 1e-4, 1e-5)}
        self.timeout = 60.0
        self.arrivals: list[float] = []
        self.inside = self.most_inside = 0
        self.unread = False
        """Whether every try but the last gets an invalid answer."""
        self._says, self._tries = says, tries

    async def start(self) -> None:
        """Do nothing."""

    async def complete(self, call: ModelCall, permit: Permit | None = None) -> ModelAnswer:
        assert permit is not None
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            for _ in range(self._tries):
                await permit(call.model, self.unread, call.max_tokens)
                self.arrivals.append(time.monotonic())
            return TEN if self._says is None else await self._says(len(self.arrivals) - 1)
        finally:
            self.inside -= 1


def _most_in(seconds: float, times: list[float]) -> int:
    times = sorted(times)
    return max(bisect_left(times, at + seconds) - index for index, at in enumerate(times))


async def _hammer(caller: LimitedCaller, calls: int) -> None:
    await asyncio.gather(*(caller.complete(CALL) for _ in range(calls)))


@pytest.mark.parametrize("tries", [1, 3])
async def test_no_minute_has_more_requests_than_allowed_including_retries(tries: int) -> None:
    minute, limit = 0.5, 80
    provider = Provider(tries=tries)
    await _hammer(LimitedCaller(provider, 16, limit, None, None, minute), 240 // tries)
    assert len(provider.arrivals) == 240
    assert _most_in(minute, provider.arrivals) <= 1.05 * limit


async def test_no_minute_has_more_tokens_than_allowed() -> None:
    minute, limit = 0.5, 8000  # 72 calls of 110 tokens
    provider = Provider()
    await _hammer(LimitedCaller(provider, 16, None, limit, None, minute), 150)
    assert _most_in(minute, provider.arrivals) * 110 <= 1.05 * limit


async def test_answers_longer_than_estimated_count_against_the_token_limit() -> None:
    async def long(number: int) -> ModelAnswer:
        return ModelAnswer("{}", 100, 110, model="m")

    minute, limit = 0.5, 8000
    provider = Provider(long)
    await _hammer(LimitedCaller(provider, 1, None, limit, None, minute), 80)
    assert _most_in(minute, provider.arrivals) * 210 <= 1.05 * limit + 100, "all answers but the last are counted"


async def test_a_restart_gives_no_second_burst() -> None:
    minute, limit = 0.5, 80
    provider = Provider()
    for _ in range(6):
        await _hammer(LimitedCaller(provider, 16, limit, None, None, minute), 20)
    assert _most_in(minute, provider.arrivals) <= 1.05 * limit


# -- concurrency ---------------------------------------------------------------------------------------------------


async def test_concurrency_grows_with_success_up_to_its_maximum() -> None:
    provider = Provider(lambda number: asyncio.sleep(0.001, TEN))
    caller = LimitedCaller(provider, 6, None, None, None)
    assert caller.gate.width == 2
    await _hammer(caller, 200)
    assert caller.gate.width == provider.most_inside == 6


async def test_concurrency_drops_on_429_and_recovers_later() -> None:
    crowded = True

    async def says(number: int) -> ModelAnswer:
        inside = provider.inside
        await asyncio.sleep(0.002)
        if crowded and inside > 3:
            raise CallFailedError(CallFailure.RATE_LIMIT, "429")
        return TEN

    provider = Provider(says)
    caller = LimitedCaller(provider, 16, None, None, None)
    widths = []

    async def one() -> None:
        with contextlib.suppress(CallFailedError):
            await caller.complete(CALL)
        widths.append(caller.gate.width)

    await asyncio.gather(*(one() for _ in range(300)))
    assert max(widths[100:]) <= 5, "concurrency stays near the provider's limit"
    assert min(widths) >= 1
    crowded = False
    await _hammer(caller, 300)
    assert caller.gate.width == 16


async def test_a_share_scales_the_concurrency_and_the_budget(store: Store) -> None:
    provider = Provider(lambda number: asyncio.sleep(0.001, TEN))
    caller = LimitedCaller(provider, 6, None, None, StoredPurse(store, 20 * PRICE))
    caller.share(0.5)
    await _hammer(caller, 4)
    assert caller.gate.width <= 3
    caller.share(1 / 1000)
    with pytest.raises(OverBudgetError):
        await caller.complete(CALL)
    assert caller.gate.width == 1
    caller.share(1.0)
    await caller.complete(CALL)


def test_rate_limit_failures_of_one_round_halve_concurrency_once() -> None:
    gate = AdaptiveLimit(16)
    for _ in range(200):
        gate.succeeded()
    for _ in range(8):
        gate.congested(began=1.0, now=2.0)
    assert gate.width == 8
    gate.congested(began=2.5, now=3.0)
    assert gate.width == 4


async def test_a_cancelled_waiting_call_frees_its_place() -> None:
    gate = AdaptiveLimit(1)
    async with gate.entered():
        waiting = asyncio.create_task(gate.entered().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(60), gate.entered():
        assert waiting.cancelled()


# -- money ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def _spent(store: Store) -> float:
    return store.spending.spent(time.time())


PRICE = 100 * 1e-5 + 40 * 1e-4


async def test_every_attempt_is_reserved_in_the_budget_beforehand(store: Store) -> None:
    reserved = []

    async def says(number: int) -> ModelAnswer:
        reserved.append(_spent(store))
        return TEN

    caller = LimitedCaller(Provider(says, tries=3), 1, None, None, StoredPurse(store, 1.0))
    await caller.complete(CALL)
    assert reserved == [pytest.approx(3 * PRICE)]
    assert _spent(store) == pytest.approx(0.001), "two attempts failed at once, so they cost nothing"


async def test_a_retry_beyond_the_daily_budget_is_not_made(store: Store) -> None:
    provider = Provider(tries=3)
    caller = LimitedCaller(provider, 1, None, None, StoredPurse(store, 2.5 * PRICE))
    with pytest.raises(OverBudgetError):
        await caller.complete(CALL)
    assert len(provider.arrivals) == 2
    assert _spent(store) == 0.0


async def test_parallel_calls_stay_within_the_daily_budget(store: Store) -> None:
    async def dear(number: int) -> ModelAnswer:
        await asyncio.sleep(0.001)
        return ModelAnswer("{}", 100, 40, PRICE, model="m")

    provider = Provider(dear)
    caller = LimitedCaller(provider, 8, None, None, StoredPurse(store, 10.4 * PRICE))
    ended = await asyncio.gather(*(caller.complete(CALL) for _ in range(40)), return_exceptions=True)
    assert sum(isinstance(each, ModelAnswer) for each in ended) == len(provider.arrivals) == 10
    assert sum(isinstance(each, OverBudgetError) for each in ended) == 30


@pytest.mark.parametrize(
    ("failure", "billed"), [(CallFailure.TIMEOUT, PRICE), (CallFailure.CRASHED, PRICE), (CallFailure.RATE_LIMIT, 0.0)]
)
async def test_failures_that_may_be_billed_count_as_spent(store: Store, failure: CallFailure, billed: float) -> None:
    async def fails(number: int) -> ModelAnswer:
        raise CallFailedError(failure, "no")

    caller = LimitedCaller(Provider(fails), 1, None, None, StoredPurse(store, 1.0))
    with pytest.raises(CallFailedError):
        await caller.complete(CALL)
    assert _spent(store) == pytest.approx(billed)


async def test_a_timed_out_attempt_counts_as_spent_even_if_a_later_attempt_succeeds(store: Store) -> None:
    bill = Bill(StoredPurse(store, 1.0), timeout=0.0)  # every try takes that long
    await bill.another(0.3)
    await bill.another(0.3)
    bill.answered(0.1)
    await bill.settle()
    assert _spent(store) == pytest.approx(0.4)


async def test_unreadable_answers_count_as_spent(store: Store) -> None:
    provider = Provider(tries=3)
    provider.unread = True
    caller = LimitedCaller(provider, 1, None, None, StoredPurse(store, 1.0))
    await caller.complete(CALL)
    assert _spent(store) == pytest.approx(2 * PRICE + 0.001)

    async def fails(number: int) -> ModelAnswer:
        raise CallFailedError(CallFailure.UNAVAILABLE, "not JSON", answered=True)

    caller = LimitedCaller(Provider(fails), 1, None, None, StoredPurse(store, 1.0))
    with pytest.raises(CallFailedError):
        await caller.complete(CALL)
    assert _spent(store) == pytest.approx(3 * PRICE + 0.001)


@pytest.mark.parametrize("spent", [-5.0, float("nan"), float("inf")])
async def test_an_invalid_cost_does_not_refill_the_daily_budget(store: Store, spent: float) -> None:
    purse = StoredPurse(store, 1.0)
    for _ in range(2):
        at = await purse.reserve(0.2)
        assert at is not None
        await purse.settle(0.2, spent, at)
    assert _spent(store) == pytest.approx(0.4)


async def test_a_crash_does_not_reset_the_daily_budget(tmp_path: Path) -> None:
    first = Store(tmp_path, "off")
    assert await StoredPurse(first, 1.0).reserve(0.7) is not None
    first.close()  # as after a crash: nothing was settled
    second = Store(tmp_path, "off")
    second.spending.settle_all().result()
    again = StoredPurse(second, 1.0)
    assert await again.reserve(0.4) is None
    assert await again.reserve(0.2) is not None
    second.close()
