"""Compares trials with a baseline file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.cli._output import message, notice
from pandaeval_collector.config.sections_scoring import Gates
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.cli._stages import EvaluationOutcome, Stage
from pandaeval_lab.cli._summary import Document, Summary
from pandaeval_lab.passk.attempts import CaseTrials, slim, trials
from pandaeval_lab.passk.gate import GateVerdict, Rules, compared, first_of
from pandaeval_lab.replay.result_lines import result_lines

BASELINE = "baseline"
"""Key of the gate."""


class BaselineStage(Stage):
    """Fails if trials are worse than in the baseline file, or too few can be compared. Raises ``UserError``."""

    def __init__(self, path: Path, gates: Gates) -> None:
        before = list(result_lines(path))
        if not before:
            raise UserError(f"{path}: the file contains no results; `pandaeval evaluate --format json` writes them")
        self._before = trials(before, None, "case")
        self._rules = Rules(max_drop=gates.baseline.max_drop, max_missing=gates.max_unscored)
        self._now: list[dict[str, Any]] = []
        self._verdict: GateVerdict | None = None

    def take(self, result: Result, document: Document) -> None:
        key = f"{document['level']}.{document['metric']}"
        if key == self._before.metric or document["metadata"].get("case"):
            self._now.append(slim(document))

    def gates(self, summary: Summary) -> Iterator[GateOutcome]:
        try:
            now = trials(self._now, self._before.metric, "case")
        except UserError:  # no trials: the comparison reports it
            now = CaseTrials(self._before.metric, "case", ())
        self._verdict = verdict = compared(self._before, now, self._rules)
        sentences = [*verdict.failures, verdict.text] if verdict.failures else [*filter(None, [verdict.notice])]
        yield GateOutcome(BASELINE, verdict.passed, f"baseline: {'; '.join(sentences)}" if sentences else "")

    def finish(self, outcome: EvaluationOutcome) -> None:
        verdict = self._verdict
        if verdict is None:
            return
        message(f"baseline: {verdict.text}")
        for state, names in (("now", verdict.missing), ("in the baseline", verdict.new)):
            if names:
                notice(f"{len(names)} cases have no determined trial {state}: {first_of(names)}")
        if verdict.notice:
            notice(verdict.notice)
        for sentence in verdict.failures:
            message(f"failed: {sentence}")
