"""Judge verdicts for coding agents."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.show.view.lines import incident_line
from pandaeval_collector.show.view.rates import handled_line, rate_lines
from pandaeval_collector.show.view.texts import units


def rate(
    metric: str, passed: int, failed: int, level: str = "session", agent: str | None = None, unclear: int = 0
) -> dict[str, Any]:
    counted = {"scored": passed + failed + unclear, "assumed": 0, "passed": passed, "failed": failed, "unscored": {}}
    counted |= {"unclear": unclear, "disputed": 0}
    return {"level": level, "metric": metric, "agent": agent, **counted}


def test_session_verdicts_are_preferred_to_run_verdicts() -> None:
    runs = rate("correctness", 0, 9, "trace")
    assert handled_line([runs]) == "0 of 9 runs were handled correctly: 0% (0% to 30%)"
    both = [runs, rate("correctness", 6, 2), rate("correctness", 6, 2, agent="clerk")]
    assert handled_line(both) == "6 of 8 sessions were handled correctly: 75% (41% to 93%)"


def test_unclear_verdicts_are_counted_separately() -> None:
    rates = [rate("correctness", 56, 14, unclear=20)]
    assert handled_line(rates) == "56 sessions were handled correctly: 80 % of 70 decided (69% to 88%), 20 unclear"
    rates.append(rate("correctness", 56, 14, agent="desk", unclear=20))
    assert rate_lines(rates) == ['session.correctness of agent "desk": 80 % of 70 decided, 20 unclear (14 failed)']


def test_without_correctness_verdicts_the_line_states_that_none_exist() -> None:
    fine = rate("agent_reliability", 9, 0)
    assert handled_line([fine]) == "no run was judged for correctness"


def test_a_returned_incident_shows_its_date_and_earlier_note() -> None:
    triage = {"state": "new", "by": "mia", "note": "provider outage", "at": 1, "back_at": 86_400_000}
    row = {"label": "error", "also": [], "agents": ["desk"], "triage": triage, "runs": 2, "id": "a" * 12}
    row |= {
        "first_at": 0,
        "last_at": 86_400_000,
        "severity": "high",
        "reason": "timeout",
        "trace_id": None,
        "metric": "trace.response",
    }
    line = incident_line(row)
    assert "came back 1970-01-02" in line
    assert "after it was resolved, by mia; note: provider outage" in line
    assert "; 2 runs, " in line


def test_an_incident_of_sessions_shows_a_number_of_sessions() -> None:
    assert units({"runs": 1204, "metric": "session.correctness"}) == "1,204 sessions"
    assert units({"runs": 1, "metric": "session.correctness"}) == "1 session"
    assert units({"runs": 1, "metric": "turn.calls"}) == "1 run"
