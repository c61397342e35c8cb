"""What trials say: pass@k and pass^k of each case by three estimators, and of all cases together; and
the results and words that they become."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from pandaeval_collector.analysis.stats.pass_k import (
    MODES,
    Bounds,
    PassEstimate,
    SuiteEstimate,
    bounds,
    pass_at_k,
    pass_pow_k,
    suite_pass_at_k,
    suite_pass_pow_k,
)
from pandaeval_collector.analysis.stats.session import assessment
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Result, Unit, now
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.trials.passk.attempts import CaseOutcomes, CaseTrials, trials

# Figures in the words of tables and pages.
NONE = "-"


def number(value: float | None) -> str:
    """Writes a share to the third digit."""
    return NONE if value is None else f"{value:.3f}"


def between(value: float | None, low: float | None, high: float | None) -> str:
    """Writes a share with its interval, where there is one."""
    return number(value) if low is None or high is None else f"{number(value)} ({low:.3f} to {high:.3f})"


def mean(estimate: SuiteEstimate) -> str:
    """Writes the mean of a suite with its interval."""
    return between(estimate.mean, estimate.ci_low, estimate.ci_high)


def median(estimate: PassEstimate) -> str:
    """Writes the median of a case by the Bayesian estimator, with its interval."""
    return between(estimate.median, estimate.ci_low, estimate.ci_high)


def three(of: Mapping[str, PassEstimate], bounds: Bounds = (None, None)) -> tuple[str, str, str]:
    """Writes the plug-in, the unbiased and the Bayesian estimate. ``bounds``: of the unbiased one, whatever the
    undetermined trials were."""
    low, high = bounds
    left = f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None and low != high else ""
    return number(of["plug_in"].value), f"{number(of['unbiased'].value)}{left}", median(of["bayesian"])


def band(label: str | None) -> str:
    """Writes an assessment with blanks in place of underscores."""
    return (label or NONE).replace("_", " ")


def worst_first(case: CaseOutcomes) -> tuple[float, str]:
    """Sorts cases by how rarely they succeed; cases without a determined trial come last."""
    return case.c / case.n if case.n else 2.0, case.id


FEW = 30
"""Below so many conversations a rate without its interval misleads."""


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The figures of one case and ``k``: pass@k and pass^k by each estimator. ``at_bounds`` and ``pow_bounds``: the
    range of the unbiased estimates, whatever the undetermined trials were. ``label``: the :func:`assessment` of the
    plug-in estimates, as in its source; ``None`` for fewer than ``k`` determined trials, or where the intervals leave
    the band: one trial that passed makes nothing reliable."""

    case: CaseOutcomes
    k: int
    at: Mapping[str, PassEstimate]
    pow: Mapping[str, PassEstimate]
    at_bounds: Bounds
    pow_bounds: Bounds
    label: str | None


@dataclass(frozen=True, slots=True)
class SuiteFigures:
    """The figures of all cases for one ``k``. ``label``: of the means over the cases that have ``k`` trials."""

    k: int
    at: SuiteEstimate
    pow: SuiteEstimate
    label: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything about one metric's trials. ``cases``: by k within each case; ``suite``: by k."""

    trials: CaseTrials
    cases: tuple[CaseFigures, ...]
    suite: tuple[SuiteFigures, ...]

    @property
    def notices(self) -> list[str]:
        """Writes what people should know before they believe the figures."""
        return list(_notices(self.trials, self.suite))


def figures(found: CaseTrials, ks: Sequence[int]) -> Figures:
    """Computes all figures, for each of ``ks`` (1 or more)."""
    return Figures(
        found,
        tuple(_of_case(case, k) for case in found.cases for k in ks),
        tuple(_of_suite(found, k) for k in ks),
    )


def conversation(case: CaseOutcomes) -> dict[str, Any]:
    """Returns the counts of a conversation, by the names of this mode's source: it is correct if all of its
    interactions are; ``None`` while an undetermined one decides that."""
    correct = None if case.undetermined and case.c == case.n else case.c == case.n
    return {"total_interactions": case.n, "correct_interactions": case.c, "is_correct": correct}


def estimate_dict(of: Mapping[str, PassEstimate], between: Bounds) -> dict[str, Any]:
    """Returns the three estimators side by side, JSON-ready."""
    bayesian = asdict(of["bayesian"])
    bayesian["mean"] = bayesian.pop("value")
    return {
        "plug_in": of["plug_in"].value,
        "unbiased": of["unbiased"].value,
        "bayesian": bayesian,
        "bounds": list(between),
    }


def _of_case(case: CaseOutcomes, k: int) -> CaseFigures:
    n, c = case.n, case.c
    at: dict[str, PassEstimate] = {mode: pass_at_k(n, c, k, mode) for mode in MODES}
    power: dict[str, PassEstimate] = {mode: pass_pow_k(n, c, k, mode) for mode in MODES}
    label = assessment(at["plug_in"].value, power["plug_in"].value) if n >= k else None
    label = _sure(label, at["bayesian"], power["bayesian"])
    return CaseFigures(case, k, at, power, *bounds(n, c, case.undetermined, k), label)


def _of_suite(found: CaseTrials, k: int) -> SuiteFigures:
    at, power = suite_pass_at_k(found.counts, k), suite_pass_pow_k(found.counts, k)
    return SuiteFigures(k, at, power, _sure(assessment(at.mean, power.mean), at, power))


def _sure(label: str | None, at: PassEstimate | SuiteEstimate, power: PassEstimate | SuiteEstimate) -> str | None:
    """Returns the label, unless an end of the intervals has another one."""
    ends = ((at.ci_low, power.ci_low), (at.ci_high, power.ci_high))
    return label if all(assessment(*end) == label for end in ends) else None


def _notices(found: CaseTrials, suite: Iterable[SuiteFigures]) -> Iterable[str]:
    undetermined = sum(case.undetermined for case in found.cases)
    if undetermined:
        yield f"{undetermined} trials are undetermined and in no estimate; the bounds say what they leave open"
    for each in suite:
        if each.at.cases < each.at.of:
            less = each.at.of - each.at.cases
            yield f"k = {each.k}: {less} of {each.at.of} cases have fewer trials and are not in the mean"
    if found.per == "conversation" and len(found.cases) < FEW:
        yield f"{len(found.cases)} conversations are fewer than {FEW}: a rate misleads, look at the intervals"
    agents = sorted({agent for case in found.cases for agent in case.agents} - {""})
    if len(agents) > 1:
        yield f"trials of {len(agents)} agents are counted together: {', '.join(agents[:5])}"


# Figures as results of level ``task``: one case over its trials.
AT, POW = "pass_at_k", "pass_pow_k"
_VERSION = "1"


def task_results(found: Figures, run_id: str | None = None) -> Iterator[Result]:
    """Makes results ``pass_at_k`` and ``pass_pow_k`` of each case and k. The score is the unbiased estimate, ``None``
    with fewer than k determined trials; the metadata hold all three estimators. The label assesses the pair."""
    for each in found.cases:
        shown = ((AT, each.at, each.at_bounds), (POW, each.pow, each.pow_bounds))
        for metric, estimates, between in shown:
            about = _about(found.trials, each) | estimate_dict(estimates, between)
            if found.trials.per == "conversation":
                about |= conversation(each.case) | _as_the_source(metric, estimates)
            yield _result(metric, found.trials, each, _finding(estimates["unbiased"].value, each, about), run_id)


def repeated(correct: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> Iterator[Result]:
    """Makes :func:`task_results` from results of ``trial_correct``, JSON-ready, for each of ``ks`` that some case has
    as many trials for; nothing where no case was tried twice."""
    if not correct:
        return
    found = trials(correct)
    most = max(len(case.trials) for case in found.cases)
    if most > 1:
        yield from task_results(figures(found, [k for k in ks if k <= most]))


def suite_objects(found: Figures) -> Iterator[dict[str, Any]]:
    """Makes results of all cases together, JSON-ready; ``metadata.case`` is ``None``."""
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
    """Returns the score and its interval under the names of the source."""
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
