"""Puts a share of the questions to a second judge as well: what two judges of different make agree on is less likely to
be a whim of one of them.

Costs one call per verdict that is compared, of the second judge's model, within the limits and the budget of both.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.agreement import Agreement
from pandaeval_collector.jobs.anew import anew
from pandaeval_collector.jobs.compare import asked_again, decided_by, with_comparison
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.jobs.known import said
from pandaeval_collector.judge.desk import Judge, Memory
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.sample import included
from pandaeval_collector.scoring.evaluator import Question

CHECK = "second"


class SecondJudge:
    """Implements :class:`pandaeval_collector.jobs.compare.Check`. ``share``: of the results, 0..1, by a hash of
    their id. Its verdicts are remembered in ``memory`` like any other. On one event loop."""

    def __init__(
        self,
        desks: Desks,
        memory: Memory,
        agreement: Agreement,
        telemetry: Telemetry,
        model: str,
        share: float,
    ) -> None:
        self._desks, self._memory, self._agreement, self._telemetry = desks, memory, agreement, telemetry
        self._model, self._share = model, share

    async def beside(self, question: Question, subject: Any, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """The finding, with what the second judge says in its metadata if this is one of those that it sees
        (``second``), and with how far the two agreed so far (``second_agreement``). The score is the first judge's."""
        if not isinstance(finding, Score) or (by := decided_by(question, finding)) == self._model:
            return finding
        key, both, second = question.metric.key, f"{by} / {self._model}", None
        if included(f"second {question.id}", self._share):
            other = anew(self._desks, self._memory, pack, self._model, "second", question.guidance)
            second, outcome = await asked_again(question, subject, first, other)
            self._telemetry.add("pandaeval.judge.seconds", outcome)
        if second is not None:
            await self._agreement.add(CHECK, key, both, (said(finding), said(second)), question.passes_from)
        figures = self._agreement.of(CHECK, key, both)
        return with_comparison(finding, question, second, CHECK, "second_agreement", figures, model=self._model)
