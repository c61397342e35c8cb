"""Trials against a baseline's: what ``pandaeval gate compare`` and ``evaluate --baseline`` say of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import result_lines
from pandaeval_collector.cli._gates import GateOutcome
from pandaeval_collector.cli._output import safe
from pandaeval_collector.config.sections_scoring import Gates
from pandaeval_collector.trials.passk.attempts import CaseTrials, slim, trials
from pandaeval_collector.trials.passk.gate import GateVerdict, Rules, compared, first_of


class Against:
    """Collects the results that trials are made of, and compares them with those of a baseline file. The constructor
    reads the file and raises ``UserError`` for an unusable one, so that the command ends before anything is scored."""

    def __init__(self, baseline: Path, gates: Gates) -> None:
        before = list(result_lines(baseline))
        if not before:
            raise UserError(f"{baseline}: there are no results in it; `pandaeval evaluate --format json` writes them")
        self._before = trials(before, gates.baseline.metric, "case")
        self._rules = Rules(gates.baseline.level, gates.baseline.max_drop, gates.max_unscored)
        self._now: list[dict[str, Any]] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """Takes one result of the current run; ignores one that belongs to no case."""
        key = f"{result['level']}.{result['metric']}"
        if key == self._before.metric or (result.get("metadata") or {}).get("case"):
            self._now.append(slim(result))

    def verdict(self) -> GateVerdict:
        """Returns the comparison of the collected trials with the baseline's."""
        try:
            now = trials(self._now, self._before.metric, "case")
        except UserError:
            now = CaseTrials(self._before.metric, "case", ())  # nothing to compare, which the verdict says
        return compared(self._before, now, self._rules)


def tell(verdict: GateVerdict) -> None:
    """Prints effect, interval and reasons of failure on standard error."""
    typer.echo(f"baseline: {verdict.told}", err=True)
    for lead, names in (("not tried now", verdict.missing), ("not in the baseline", verdict.new)):
        if names:
            typer.echo(f"notice: {len(names)} cases are {lead}: {safe(first_of(names))}", err=True)
    if verdict.notice:
        typer.echo(f"notice: {safe(verdict.notice)}", err=True)
    for sentence in verdict.failures:
        typer.echo(f"failed: {safe(sentence)}", err=True)


def outcome(verdict: GateVerdict) -> GateOutcome:
    """Returns the verdict as one more gate of the run, for the reports that CI systems read."""
    told = "; ".join([*verdict.failures, verdict.told] if verdict.failures else filter(None, [verdict.notice]))
    return GateOutcome("baseline", verdict.passed, f"baseline: {told}" if told else "")
