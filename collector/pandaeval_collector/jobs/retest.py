"""Asks a share of the questions twice: how much the second verdict differs from the first shows how much chance is in
the judge.

The second time the same words stand behind other fences, and the first verdict is not in memory; what was extracted
from the run before (its task, its plan) is. Costs one call per retest, within the judge's limits and budget.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.agreement import Agreement
from pandaeval_collector.jobs.anew import Forgetful, anew
from pandaeval_collector.jobs.compare import asked_again, decided_by, with_comparison
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.jobs.known import said
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.sample import included
from pandaeval_collector.scoring.evaluator import Question

CHECK = "retest"


class Retest:
    """Implements :class:`pandaeval_collector.jobs.compare.Check`. ``share``: of the results, 0..1, by a hash of
    their id. On one event loop."""

    def __init__(self, desks: Desks, agreement: Agreement, telemetry: Telemetry, share: float) -> None:
        self._desks, self._agreement, self._telemetry, self._share = desks, agreement, telemetry, share

    async def beside(self, question: Question, subject: Any, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """The finding, with what a second verdict says in its metadata if this is one of those that get one
        (``retest``), and with how far the judge agreed with itself so far (``judge_agreement``). The score is the first
        verdict's, always; its costs are those of both."""
        if not isinstance(finding, Score) or not first.spent.calls:
            return finding
        key, model, second = question.metric.key, decided_by(question, finding), None
        if included(f"retest {question.id}", self._share):
            other = anew(self._desks, Forgetful(), pack, model, "again", question.guidance)
            second, outcome = await asked_again(question, subject, first, other)
            self._telemetry.add("pandaeval.judge.retests", outcome)
        if second is not None:
            await self._agreement.add(CHECK, key, model, (said(finding), said(second)), question.passes_from)
        return with_comparison(
            finding, question, second, "retest", "judge_agreement", self._agreement.of(CHECK, key, model)
        )
