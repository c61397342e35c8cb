"""Trials against a baseline's: what ``pandaeval gate compare`` and ``evaluate --baseline`` say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pandaeval_collector.cli._gates import GateOutcome
    from pandaeval_collector.config.sections_scoring import Baseline
    from pandaeval_collector.trials.passk.attempts import CaseTrials
    from pandaeval_collector.trials.passk.gate import GateVerdict, Rules


class Against:
    """Collects the results that trials are made of, and compares them with those of a baseline file. The constructor
    reads the file and raises ``UserError`` for an unusable one, so that the command ends before anything is scored."""

    def __init__(self, baseline: Path, settings: Baseline, max_missing: float) -> None:
        from pandaeval_collector.base.errors import UserError
        from pandaeval_collector.base.untrusted.given_files import result_lines
        from pandaeval_collector.trials.passk.attempts import slim, trials
        from pandaeval_collector.trials.passk.gate import Rules

        before = list(result_lines(baseline))
        if not before:
            raise UserError(f"{baseline}: there are no results in it; `pandaeval evaluate --format json` writes them")
        self._before: CaseTrials = trials(before, settings.metric, "case")
        self._rules: Rules = Rules(settings.level, settings.max_drop, max_missing)
        self._now: list[dict[str, Any]] = []
        self._slim = slim

    def add(self, result: Mapping[str, Any]) -> None:
        """Takes one result of the current run; ignores one that belongs to no case."""
        key = f"{result['level']}.{result['metric']}"
        if key == self._before.metric or (result.get("metadata") or {}).get("case"):
            self._now.append(self._slim(result))

    def verdict(self) -> GateVerdict:
        """Returns the comparison of the collected trials with the baseline's."""
        from pandaeval_collector.base.errors import UserError
        from pandaeval_collector.trials.passk.attempts import CaseTrials, trials
        from pandaeval_collector.trials.passk.gate import compared

        try:
            now = trials(self._now, self._before.metric, "case")
        except UserError:
            now = CaseTrials(self._before.metric, "case", ())  # nothing to compare, which the verdict says
        return compared(self._before, now, self._rules)


def tell(verdict: GateVerdict) -> None:
    """Prints effect, interval and reasons of failure on standard error."""
    from pandaeval_collector.cli._output import safe

    typer.echo(f"baseline: {verdict.told}", err=True)
    for lead, names in (("not tried now", verdict.missing), ("not in the baseline", verdict.new)):
        if names:
            typer.echo(f"notice: {len(names)} cases are {lead}: {', '.join(shown(names))}", err=True)
    if verdict.notice:
        typer.echo(f"notice: {safe(verdict.notice)}", err=True)
    for sentence in verdict.failures:
        typer.echo(f"failed: {safe(sentence)}", err=True)


def outcome(verdict: GateVerdict) -> GateOutcome:
    """Returns the verdict as one more gate of the run, for the reports that CI systems read."""
    from pandaeval_collector.cli._gates import GateOutcome

    told = "; ".join([*verdict.failures, verdict.told] if verdict.failures else filter(None, [verdict.notice]))
    return GateOutcome("baseline", verdict.passed, f"baseline: {told}" if told else "")


def shown(names: Iterable[str], most: int = 5) -> list[str]:
    """Returns the first ``most`` names, safe to print, and ``…`` if there are more."""
    from pandaeval_collector.cli._output import safe

    every = [safe(name) for name in names]
    return every if len(every) <= most else [*every[:most], "…"]
