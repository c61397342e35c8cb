"""Puts a question that has its verdict once more, to the same judge or to another, and notes beside the verdict what
came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.jobs.agreement import VerdictAgreement
from pandaeval_collector.jobs.anew import Again, pay
from pandaeval_collector.jobs.known import said
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.scoring.evaluator import Question


class Check(Protocol):
    """Looks at a verdict once more. It changes no score."""

    async def beside(self, question: Question, subject: Any, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """The finding with what was found in its metadata. ``first``: the judge who gave it, on whose account further
        calls are."""
        ...


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
