"""Reported token usage, if plausible."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.judge.call import ModelCall
from pandaeval_collector.judge.known_models import FREE, Price
from pandaeval_collector.judge.limits import AnswerUsage, believed, estimated

PRICE = Price(1e-5, 1e-4, 1e-6)
CALL = ModelCall("m", [{"role": "system", "content": "x" * 3996}], 40)  # 1000 tokens
TEXT = "y" * 396  # 100 tokens
ESTIMATE = AnswerUsage(1000, 40, 1000 * 1e-5 + 40 * 1e-4)


def _stated(prompt: Any, completion: Any, cost: Any = None) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "cost_usd": cost}


def test_plausible_usage_is_accepted() -> None:
    assert believed(_stated(1200, 90, 0.02), CALL, TEXT, PRICE) == AnswerUsage(1200, 90, 0.02)
    assert believed(_stated(1200, 390, 0.02), CALL, TEXT, PRICE).completion_tokens == 390, "reasoning counts"
    assert believed(_stated(1200, 90, 0.002), CALL, TEXT, PRICE).cost_usd == 0.002, "a cached prompt is cheap"


@pytest.mark.parametrize(
    "odd", [None, -1, -(10**9), 0, 10**12, 10**400, "100", 100.0, 100.5, float("nan"), float("inf"), True, [100], {}]
)
def test_impossible_token_counts_are_replaced_by_the_estimate(odd: Any) -> None:
    assert estimated(CALL, PRICE) == ESTIMATE
    assert believed(_stated(odd, 90, 0.02), CALL, TEXT, PRICE) == ESTIMATE
    assert believed(_stated(1000, odd, 0.02), CALL, TEXT, PRICE) == ESTIMATE


@pytest.mark.parametrize("stated", [{}, _stated(1, 90), _stated(99, 90), _stated(1000, 1), _stated(1000, 401)])
def test_missing_or_implausible_token_counts_are_replaced_by_the_estimate(stated: dict[str, Any]) -> None:
    assert believed(stated, CALL, TEXT, PRICE) == ESTIMATE


def test_an_empty_answer_may_have_zero_tokens() -> None:
    assert believed(_stated(1000, 0), CALL, "", PRICE) == AnswerUsage(1000, 0, pytest.approx(0.01))


@pytest.mark.parametrize("cost", [None, 0, -0.01, 1e-9, 1e9, "0.01", True, float("nan"), float("inf"), -float("inf")])
def test_an_implausible_cost_is_replaced_by_the_list_price(cost: Any) -> None:
    assert believed(_stated(1000, 40, cost), CALL, TEXT, PRICE).cost_usd == pytest.approx(0.014)


@pytest.mark.parametrize(("cost", "counts"), [(None, 0.0), (0.3, 0.3), (-0.3, 0.0), (1e6, 0.0), (float("nan"), 0.0)])
def test_without_a_list_price_a_plausible_reported_cost_counts(cost: Any, counts: float) -> None:
    assert believed(_stated(1000, 40, cost), CALL, TEXT, FREE).cost_usd == counts


_ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(_ANY, _ANY, _ANY, st.text(max_size=400))
def test_usage_and_cost_stay_within_plausible_bounds(prompt: Any, completion: Any, cost: Any, text: str) -> None:
    usage = believed(_stated(prompt, completion, cost), CALL, text, PRICE)
    assert 100 <= usage.prompt_tokens <= 10_000
    assert 0 <= usage.completion_tokens <= 400
    assert 0.0001 * 0.01 <= usage.cost_usd <= 1.5


def test_cached_tokens_have_their_own_price_and_are_never_more_than_the_prompt() -> None:
    stated = {**_stated(1200, 90), "cached_tokens": 1000}
    found = believed(stated, CALL, TEXT, PRICE)
    assert found.cached_tokens == 1000
    assert found.cost_usd == pytest.approx(200 * 1e-5 + 1000 * 1e-6 + 90 * 1e-4)
    for odd in (1201, -1, True, 10.5, "1000", None):
        assert believed({**stated, "cached_tokens": odd}, CALL, TEXT, PRICE) == believed(
            _stated(1200, 90), CALL, TEXT, PRICE
        )
