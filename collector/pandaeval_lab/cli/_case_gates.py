"""Decides which cases fail a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import many
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.report.layers import LayerReport

if TYPE_CHECKING:  # `evaluate` must not import gRPC
    from pandaeval_lab.running.attempts import Attempted

CASE = "case "
"""Keys of the gates of cases begin with this."""
ATTEMPTS = "attempts"
"""Key of the gate that fails if no attempt ran to its end."""
_REASON = 200
_OVERRIDDEN = " (--no-fail: this does not fail the run)"


@dataclass(frozen=True, slots=True)
class CaseGates:
    """The rules of ``pandaeval cases run`` for its exit code.

    - A regression case or scenario fails the run if most of its trials are not correct.
    - A capability case fails the run only by a threshold or the baseline.
    - If every attempt ended with an error, the run fails.

    ``no_fail``: failing cases are only reported. The last rule still holds.
    """

    attempts: Sequence[Attempted]
    no_fail: bool = False

    def outcomes(self, report: LayerReport) -> Iterator[GateOutcome]:
        """Yield failing cases, worst first, and an outcome if no attempt finished."""
        for case, count in report.cases().items():
            if not count.fails:
                continue
            wrong = f"{count.correct[False]} of {many(count.trials, 'trial')} not correct"
            text = f"case {case}: {wrong}: {excerpt(count.failed, _REASON)}"
            yield GateOutcome(CASE + case, self.no_fail, text + _OVERRIDDEN * self.no_fail)
        errors = [attempt.error or attempt.spoilt for attempt in self.attempts if attempt.has_ended]
        if errors and all(errors):
            problem = f"none of {many(len(errors), 'attempt')} ran to its end: {excerpt(errors[0], _REASON)}"
            yield GateOutcome(ATTEMPTS, False, problem)
