"""Estimates for each ``judge.detail``."""

from __future__ import annotations

import pytest

from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_lab.replay.estimates import by_detail


def estimate(calls: int, usd: float | None) -> CostEstimate:
    return CostEstimate(10, 10, 10, calls, cost_usd=usd, models={"m": {"calls": calls, "tokens": 100 * calls}})


@pytest.mark.parametrize(("chosen", "calls", "usd"), [("none", 10, 1.0), ("failing", 15, 1.5), ("all", 100, 9.0)])
def test_each_setting_has_calls_and_cost(chosen: str, calls: int, usd: float) -> None:
    made = {"none": estimate(10, 1.0), "failing": estimate(20, 2.0), "all": estimate(100, 9.0)}
    found = by_detail(made, chosen)
    assert (found.calls, found.cost_usd, found.models["m"]["calls"]) == (calls, usd, calls)
    figures = {name: (each["calls"], each["cost_usd"]) for name, each in found.by_detail.items()}
    assert figures == {"none": (10, 1.0), "failing": (15, 1.5), "all": (100, 9.0)}


def test_an_unknown_price_stays_unknown() -> None:
    made = {"none": estimate(10, None), "failing": estimate(20, None), "all": estimate(100, None)}
    assert by_detail(made, "failing").cost_usd is None
