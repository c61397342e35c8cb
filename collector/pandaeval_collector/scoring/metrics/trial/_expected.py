"""What graders of tools say alike."""

from __future__ import annotations

from pandaeval_collector.base.score import Assumed
from pandaeval_collector.scoring.cases.trial import Trial

NOTHING_EXPECTED = Assumed("the case expects no call")
COUNTED = "tool calls, and a case with expected_tools or expected_outcome.tools_called"


def names(calls: list[str] | tuple[str, ...]) -> str:
    """For reasons: at most 12 of them."""
    shown = ", ".join(calls[:12]) or "none"
    return f"{shown}, … ({len(calls)} in all)" if len(calls) > 12 else shown


def compared(trial: Trial, actual: list[str] | tuple[str, ...]) -> str:
    return f"expected {names(trial.expected_names(actual))}; called {names(actual)}"
