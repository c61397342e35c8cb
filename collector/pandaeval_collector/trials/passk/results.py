"""Figures as results of level ``task``: one case over its trials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from pandaeval_collector.analysis.stats.pass_k import PassEstimate, SuiteEstimate
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Result, Unit, now
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.trials.passk.attempts import CaseOutcomes, CaseTrials, trials
from pandaeval_collector.trials.passk.figures import (
    CaseFigures,
    Figures,
    SuiteFigures,
    conversation,
    estimate_dict,
    figures,
)

AT, POW = "pass_at_k", "pass_pow_k"
_VERSION = "1"


def task_results(found: Figures, run_id: str | None = None) -> Iterator[Result]:
    """Makes results ``pass_at_k`` and ``pass_pow_k`` of each case and k. The score is the unbiased estimate, and there
    is none with fewer than k determined trials; the metadata hold all three estimators. The label is the assessment of
    the pair."""
    for each in found.cases:
        shown = ((AT, each.at, each.at_bounds), (POW, each.pow, each.pow_bounds))
        for metric, estimates, between in shown:
            about = _about(found.trials, each) | estimate_dict(estimates, between)
            if found.trials.per == "conversation":
                about |= conversation(each.case) | _as_the_source(metric, estimates)
            yield _result(metric, found.trials, each, _finding(estimates["unbiased"].value, each, about), run_id)


def repeated(correct: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> Iterator[Result]:
    """:func:`task_results` of the trials that some results of ``trial_correct``, JSON-ready, tell of: for those of
    ``ks`` for which a case has as many trials, and none where no case was tried twice."""
    if not correct:
        return
    found = trials(correct)
    most = max(len(case.trials) for case in found.cases)
    if most > 1:
        yield from task_results(figures(found, [k for k in ks if k <= most]))


def suite_objects(found: Figures) -> Iterator[dict[str, Any]]:
    """Makes the same of all cases together, JSON-ready, under the names of results; ``metadata.case`` is ``None``."""
    for each in found.suite:
        for metric, estimate in ((AT, each.at), (POW, each.pow)):
            yield {
                "metric": metric,
                "level": "task",
                "outcome": "unscored" if estimate.value is None else "scored",
                "score": estimate.value,
                "label": each.label,
                "metadata": _suite(found.trials, each, estimate),
            }


def _suite(trials: CaseTrials, each: SuiteFigures, estimate: SuiteEstimate) -> dict[str, Any]:
    return {
        "case": None,
        "k": each.k,
        "metric": trials.metric,
        "per": trials.per,
        "cases": estimate.cases,
        "of": estimate.of,
        "mean": estimate.mean,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
        "method": estimate.method,
    }


def _about(trials: CaseTrials, each: CaseFigures) -> dict[str, Any]:
    case = each.case
    kind = {"case_kind": case.kind} if case.kind else {}
    return {
        "case": case.id,
        **kind,
        "k": each.k,
        "n": case.n,
        "c": case.c,
        "undetermined": case.undetermined,
        "metric": trials.metric,
        "per": trials.per,
    }


def _as_the_source(metric: str, estimates: Mapping[str, PassEstimate]) -> dict[str, Any]:
    """Under the source's names; the value is that of the score."""
    bayesian = estimates["bayesian"]
    return {
        metric: estimates["unbiased"].value,
        f"{metric}_ci_low": bayesian.ci_low,
        f"{metric}_ci_high": bayesian.ci_high,
    }


def _finding(value: float | None, each: CaseFigures, about: dict[str, Any]) -> Finding:
    made = f"{each.case.c} of {each.case.n} trials succeeded"
    if value is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"{made}; k = {each.k} takes as many determined trials", about)
    return Score(min(1.0, max(0.0, value)), made, about, label=each.label)


def _result(metric: str, trials: CaseTrials, each: CaseFigures, finding: Finding, run_id: str | None) -> Result:
    agents = each.case.agents - {""}
    unit = Unit(
        level="task",
        id=each.case.id,
        trace_id="",
        span_id="",
        session_id=each.case.id if trials.per == "conversation" else None,
        agent=next(iter(agents)) if len(agents) == 1 else "",
        evidence=_digest(each.case),
    )
    identity = Identity(f"task.{metric}", _VERSION, None, {"k": each.k, "metric": trials.metric, "per": trials.per})
    return Result(
        id=identity.of(unit),
        metric=metric,
        unit=unit,
        finding=finding,
        evaluator=EvaluatorInfo("math", _VERSION),
        threshold=None,
        revision=1,
        final=True,
        duration_ms=0.0,
        time=now(),
        run_id=run_id,
    )


def _digest(case: CaseOutcomes) -> str:
    made = orjson.dumps(sorted((*trial, passed) for trial, passed in case.trials.items()))
    return hashlib.blake2b(made, digest_size=16).hexdigest()
