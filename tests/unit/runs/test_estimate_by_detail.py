"""Estimates for each ``judge.detail``."""

from __future__ import annotations

import pytest

from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_lab.replay.estimates import Counted, by_detail, estimate, with_some_wrong

COUNTED = {
    "none": Counted({"m": (10, 100, 0)}, 2),
    "failing": Counted({"m": (20, 200, 0), "other": (2, 10, 0)}, 4),
    "all": Counted({"m": (100, 900, 0)}),
}


def estimated(chosen: str, prices: dict[str, Price]) -> CostEstimate:
    counted = with_some_wrong(COUNTED)
    return by_detail({name: estimate([(1, 0)], each, 1, prices) for name, each in counted.items()}, chosen)


@pytest.mark.parametrize(("chosen", "calls", "usd"), [("none", 10, 1.0), ("failing", 16, 1.55), ("all", 100, 9.0)])
def test_each_setting_has_calls_and_cost(chosen: str, calls: int, usd: float) -> None:
    found = estimated(chosen, {"m": Price(0.01, 0.0), "other": Price(0.01, 0.0)})
    assert (found.calls, found.cost_usd) == (calls, usd)
    figures = {name: (each["calls"], each["cost_usd"]) for name, each in found.by_detail.items()}
    assert figures == {"none": (10, 1.0), "failing": (16, 1.55), "all": (100, 9.0)}


def test_estimates_assume_that_half_of_the_verdicts_of_each_model_are_wrong() -> None:
    found = estimated("failing", {})
    assert (found.models["m"], found.models["other"]) == ({"calls": 15, "tokens": 150}, {"calls": 1, "tokens": 5})
    assert found.remembered == 3


def test_an_unknown_price_stays_unknown() -> None:
    assert estimated("failing", {}).cost_usd is None
