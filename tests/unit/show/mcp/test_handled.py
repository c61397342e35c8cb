"""What a coding agent hears of whether agents did their job: a judge's verdicts with their interval, and no praise."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.show.view.rates import handled_line


def rate(metric: str, passed: int, failed: int, level: str = "session", agent: str = "desk") -> dict[str, Any]:
    counted = {"scored": passed + failed, "assumed": 0, "passed": passed, "failed": failed, "unscored": {}}
    return {"level": level, "metric": metric, "agent": agent, "service": "shop", "environment": "", **counted}


def test_verdicts_on_sessions_come_before_those_on_runs() -> None:
    runs = rate("correctness", 0, 9, "trace")
    assert handled_line([runs]) == "0 of 9 runs were handled correctly: 0% (0% to 30%)"
    both = [runs, rate("correctness", 3, 1), rate("correctness", 3, 1, agent="clerk")]
    assert handled_line(both) == "6 of 8 sessions were handled correctly: 75% (41% to 93%)"


def test_without_a_verdict_nothing_is_praised() -> None:
    fine = rate("agent_reliability", 9, 0)
    assert handled_line([fine]) == "no run was judged for correctness"
