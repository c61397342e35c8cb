"""Decides which cases fail a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import many
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.report.layers import LayerReport, TrialCount

if TYPE_CHECKING:  # `evaluate` must not import gRPC
    from pandaeval_lab.running.attempts import Attempted

CASE = "case "
"""Keys of the gates of cases begin with this."""
ATTEMPTS = "attempts"
"""Key of the gate that fails if no attempt ran to its end."""
_REASON = 200
_OVERRIDDEN = " (--no-fail: this does not fail the run)"
_REPORTED = " (only configured gates fail evaluate, such as metrics.thresholds: {trial.trial_correct: 1})"


@dataclass(frozen=True, slots=True)
class CaseGates:
    """The rules of ``pandaeval cases run`` for its exit code.

    - A regression case or scenario fails the run if most of its trials are not correct, or if none is correct and a
      grader has no score.
    - A capability case fails the run only by a threshold or the baseline.
    - If every attempt ended with an error, the run fails.

    ``no_fail``: failing cases are only reported. The last rule still holds.
    """

    attempts: Sequence[Attempted]
    no_fail: bool

    def outcomes(self, report: LayerReport) -> Iterator[GateOutcome]:
        """Yield failing cases, worst first, and an outcome if no attempt finished."""
        yield from failing_cases(report, self.no_fail, _OVERRIDDEN * self.no_fail)
        errors = [attempt.error or attempt.spoilt for attempt in self.attempts if attempt.has_ended]
        if errors and all(errors):
            problem = f"none of {many(len(errors), 'attempt')} ran to its end: {excerpt(errors[0], _REASON)}"
            yield GateOutcome(ATTEMPTS, False, problem)


def failing_cases(report: LayerReport, passed: bool = True, note: str = _REPORTED) -> Iterator[GateOutcome]:
    """Yield regression cases and scenarios that fail, worst first.

    Default: as notices, because the exit code of ``evaluate`` is of configured gates only.
    """
    for case, count in report.cases().items():
        if count.fails:
            yield GateOutcome(CASE + case, passed, f"case {case}: {_problem(count)}{note}")


def _problem(count: TrialCount) -> str:
    trials = many(count.trials, "trial")
    if 2 * count.correct[False] > count.trials:
        return f"{count.correct[False]} of {trials} not correct: {excerpt(count.failed, _REASON)}"
    return f"none of {trials} is correct, and a grader has no score: {excerpt(count.unscored, _REASON)}"
