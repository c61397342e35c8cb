"""Puts a share of the questions that have a verdict once more, to the same judge or to another, and notes beside the
verdict what came of it.

The same judge (``judge.retest``) sees the same words behind other fences, without the first verdict in memory: what
differs is chance. Another one (``judge.second``), best of another make, is less likely to share a whim. What was
extracted from the run before (its task, its plan) stands for both. No score changes; each costs one call, within the
judge's limits and budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.agreement import Agreement, VerdictAgreement
from pandaeval_collector.jobs.anew import Again, Forgetful, anew, pay
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.jobs.known import said
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Judge, Memory, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.selection import included
from pandaeval_collector.scoring.evaluator import Question


class AskedAgain:
    """Looks at a verdict once more, and changes no score. ``share``: of the results, 0..1, by a hash of their id;
    ``model``: another judge, whose verdicts are remembered in ``memory``; without one the same judge is asked. On one
    event loop."""

    def __init__(
        self,
        desks: Desks,
        agreement: Agreement,
        telemetry: Telemetry,
        share: float,
        model: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._desks, self._agreement, self._telemetry, self._share = desks, agreement, telemetry, share
        self._model, self._memory = model, memory or Forgetful()
        self._name = "retest" if model is None else "second"
        self._counter = "pandaeval.judge.retests" if model is None else "pandaeval.judge.seconds"

    async def beside(self, question: Question, subject: Any, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """The finding, with what was said the second time in its metadata if this is one of those that are asked about
        again (``retest``, ``second``), and with how far the two agreed so far (``judge_agreement``,
        ``second_agreement``). The score is the first verdict's, always; its costs are those of both."""
        if not isinstance(finding, Score):
            return finding
        key, by, second = question.metric.key, decided_by(question, finding), None
        if by == self._model or (self._model is None and not first.spent.calls):
            return finding
        both = by if self._model is None else f"{by} / {self._model}"
        if included(f"{self._name} {question.id}", self._share):
            fence = "again" if self._model is None else "second"
            other = anew(self._desks, self._memory, pack, self._model or by, fence, question.guidance)
            second, outcome = await asked_again(question, subject, first, other)
            self._telemetry.add(self._counter, outcome)
        if second is not None:
            await self._agreement.add(self._name, key, both, (said(finding), said(second)), question.passes_from)
        so_far = "judge_agreement" if self._model is None else "second_agreement"
        more = {} if self._model is None else {"model": self._model}
        figures = self._agreement.of(self._name, key, both)
        return with_comparison(finding, question, second, self._name, so_far, figures, **more)


async def asked_again(question: Question, subject: Any, first: Judge, other: Judge) -> tuple[Score | None, str]:
    """The score that ``other`` gives, or ``None`` where there is nothing to compare: that a provider is away says
    nothing about a judge. And ``compared``, ``no_verdict`` or ``not_asked``."""
    asked = question.metric.ask
    assert asked is not None
    try:
        found = await asked(subject, Again(first, other, question.metric.name))
    except NoVerdictError:
        found = None
    except (CallFailedError, OverBudgetError):
        return None, "not_asked"
    finally:
        pay(first.spent, other.spent)
    return (found, "compared") if isinstance(found, Score) else (None, "no_verdict")


def decided_by(question: Question, finding: Score) -> str:
    """The model whose verdict stands: the judge's, or that of the cheap one that was asked first."""
    cascade = finding.metadata.get("cascade")
    return str(cascade["model"]) if isinstance(cascade, dict) and not cascade["asked"] else question.model


def with_comparison(
    finding: Score,
    question: Question,
    second: Score | None,
    name: str,
    so_far: str,
    figures: VerdictAgreement | None,
    **more: Any,
) -> Score:
    """The finding with what the judge said the second time (before any limit that facts set) under ``name`` in its
    metadata, and the figures of all so far under ``so_far``."""
    about: dict[str, Any] = {}
    if second is not None:
        one, other = said(finding), said(second)
        flipped = (one >= question.passes_from) != (other >= question.passes_from)
        about[name] = {**more, "score": other, "difference": abs(other - one), "flipped": flipped}
    if figures is not None:
        about[so_far] = figures.to_dict()
    return replace(finding, metadata={**finding.metadata, **about}) if about else finding
