"""What graders of tools say alike."""

from __future__ import annotations

from pandaeval_collector.base.score import Assumed
from pandaeval_collector.scoring.cases.arguments import differing
from pandaeval_collector.scoring.cases.tool_parts import matched
from pandaeval_collector.scoring.cases.trial import Trial

NOTHING_EXPECTED = Assumed("the case expects no call")
COUNTED = "tool calls, and a case with expected_tools or expected_outcome.tools_called"


def names(calls: list[str] | tuple[str, ...]) -> str:
    """For reasons: at most 12 of them."""
    shown = ", ".join(calls[:12]) or "none"
    return f"{shown}, … ({len(calls)} in all)" if len(calls) > 12 else shown


def compared(trial: Trial, actual: list[str] | tuple[str, ...]) -> str:
    return f"expected {names(trial.expected_names(actual))}; called {names(actual)}"


def wrong_arguments(trial: Trial) -> str:
    """Which arguments of the calls that were made are not the expected ones, by call; empty for none."""
    expected = trial.expected or ()
    pairs = [(expected[row], trial.calls[column]) for row, column, worth in matched(expected, trial.calls) if worth < 1]
    told = [f"{each.tool_name}({', '.join(differing(each, call)[:4])})" for each, call in pairs[:3]]
    return "; ".join(told)
