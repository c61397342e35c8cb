"""Computes pass@k and pass^k per case by three estimators, and over all cases.

The mean uses unbiased estimates. Its interval is Wilson's below 50 cases, then the bootstrap over cases.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import orjson

from pandaeval_collector.analysis.stats.pass_k import MODES, Mode, PassEstimate, pass_at_k, pass_pow_k
from pandaeval_collector.analysis.stats.quantiles import LEVEL, means, normal_quantile, wilson
from pandaeval_collector.analysis.stats.session import assessment
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin, Result, Unit, conclude, cut
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.show.view.texts import NO_VALUE, estimate, number
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials, trials

KS = (1, 3, 5)
"""Default numbers of trials for pass@k and pass^k."""
FEW = 30
"""Below this number of conversations, a rate without its interval is misleading."""
SUITE_HEAD = ("k", "pass@k", "pass^k", "assessment")
CASE_HEAD = (
    *("trials", "passed", "undetermined", "k"),
    *("pass@k plug-in", "unbiased", "Bayesian", "pass^k plug-in", "unbiased", "Bayesian", "assessment"),
)
AT, POW = "pass_at_k", "pass_pow_k"
_VERSION = "1"
Bounds: TypeAlias = tuple[float | None, float | None]
ENOUGH_CASES = 50
"""Fewest cases for which the bootstrap over cases keeps its coverage."""
Counts = tuple[int, int]
"""Determined trials of a case, and how many of them succeeded."""
CAPABILITY = "capability"


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """Figures of a case and ``k``, by estimator.

    ``at_bounds``, ``pow_bounds``: ranges over undetermined outcomes. ``label``: the :func:`assessment` of plug-in
    estimates, ``None`` if uncertain.
    """

    case: CaseOutcomes
    k: int
    at: Mapping[str, PassEstimate]
    pow: Mapping[str, PassEstimate]
    at_bounds: Bounds
    pow_bounds: Bounds
    label: str | None


@dataclass(frozen=True, slots=True)
class SuiteFigures:
    k: int
    at: SuiteEstimate
    pow: SuiteEstimate
    label: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    trials: CaseTrials
    cases: tuple[CaseFigures, ...]
    suite: tuple[SuiteFigures, ...]

    @property
    def notices(self) -> Iterator[str]:
        cases = self.trials.cases
        undetermined = sum(case.undetermined for case in cases)
        if undetermined:
            yield f"{undetermined} trials are undetermined and excluded; the bounds show their possible effect"
        for each in self.suite:
            if each.at.cases < each.at.of:
                less = each.at.of - each.at.cases
                yield f"k = {each.k}: {less} of {each.at.of} cases have fewer determined trials and are not in the mean"
        if self.trials.per == "conversation" and len(cases) < FEW:
            yield f"{len(cases)} conversations are fewer than {FEW}, so use the intervals, not the rates"
        agents = sorted({agent for case in cases for agent in case.agents} - {""})
        if len(agents) > 1:
            yield f"trials of {len(agents)} agents are counted together: {', '.join(agents[:5])}"


def figures(found: CaseTrials, ks: Sequence[int]) -> Figures:
    suites = []
    for k in ks:
        at, power = (suite(of, found.counts, k) for of in (pass_at_k, pass_pow_k))
        suites.append(SuiteFigures(k, at, power, _sure(assessment(at.mean, power.mean), at, power)))
    cases = []
    for case, k in product(found.cases, ks):
        n, c = case.n, case.c
        of_at: dict[str, PassEstimate] = {mode: pass_at_k(n, c, k, mode) for mode in MODES}
        of_pow: dict[str, PassEstimate] = {mode: pass_pow_k(n, c, k, mode) for mode in MODES}
        label = assessment(of_at["plug_in"].value, of_pow["plug_in"].value) if n >= k else None
        label = _sure(label, of_at["bayesian"], of_pow["bayesian"])
        cases.append(CaseFigures(case, k, of_at, of_pow, *bounds(n, c, case.undetermined, k), label))
    return Figures(found, tuple(cases), tuple(suites))


def conversation(case: CaseOutcomes) -> dict[str, Any]:
    correct = None if case.undetermined and case.c == case.n else case.c == case.n
    return {"total_interactions": case.n, "correct_interactions": case.c, "is_correct": correct}


def _sure(label: str | None, at: PassEstimate | SuiteEstimate, power: PassEstimate | SuiteEstimate) -> str | None:
    ends = ((at.ci_low, power.ci_low), (at.ci_high, power.ci_high))
    return label if all(assessment(*end) == label for end in ends) else None


def worst_first(case: CaseOutcomes) -> tuple[float, str]:
    """Sort cases by success rate; undetermined cases come last."""
    return case.c / case.n if case.n else 2.0, case.id


def suite_row(each: SuiteFigures) -> tuple[str, ...]:
    means = (estimate(of.mean, of.ci_low, of.ci_high, ".3f") for of in (each.at, each.pow))
    return f"{each.at.cases} of {each.at.of}", str(each.k), *means, _band(each.label)


def case_row(each: CaseFigures) -> tuple[str, ...]:
    case = each.case
    counts = map(str, (case.n, case.c, case.undetermined, each.k))
    return (
        cut(case.id, 200),
        *counts,
        *_three(each.at, each.at_bounds),
        *_three(each.pow, each.pow_bounds),
        _band(each.label),
    )


def _three(of: Mapping[str, PassEstimate], bounds: Bounds) -> tuple[str, str, str]:
    low, high = bounds
    left = f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None and low != high else ""
    plug_in, unbiased = (number(of[mode].value, ".3f") for mode in ("plug_in", "unbiased"))
    by_bayes = of["bayesian"]
    return plug_in, f"{unbiased}{left}", estimate(by_bayes.median, by_bayes.ci_low, by_bayes.ci_high, ".3f")


def _band(label: str | None) -> str:
    return (label or NO_VALUE).replace("_", " ")


def task_results(found: Figures) -> Iterator[Result]:
    """Make ``pass_at_k`` and ``pass_pow_k`` results per case and k.

    The score is the unbiased estimate, ``None`` below k determined trials.
    """
    trials = found.trials
    settings = {"metric": trials.metric, "per": trials.per}
    for each in found.cases:
        case, agents = each.case, each.case.agents - {""}
        made = f"{case.c} of {case.n} trials succeeded"
        evidence = orjson.dumps(sorted((*trial, passed) for trial, passed in case.trials.items()))
        unit = Unit(
            level="task",
            id=case.id,
            trace_id="",
            span_id="",
            session_id=case.id if trials.per == "conversation" else None,
            agent=next(iter(agents)) if len(agents) == 1 else "",
            evidence=hashlib.blake2b(evidence, digest_size=16).hexdigest(),
        )
        for metric, estimates, between in ((AT, each.at, each.at_bounds), (POW, each.pow, each.pow_bounds)):
            value, bayesian = estimates["unbiased"].value, estimates["bayesian"]
            by_bayes = asdict(bayesian)
            by_bayes["mean"] = by_bayes.pop("value")
            about = {
                "case": case.id,
                **({"case_kind": case.kind} if case.kind else {}),
                "k": each.k,
                "n": case.n,
                "c": case.c,
                "undetermined": case.undetermined,
                **settings,
                "plug_in": estimates["plug_in"].value,
                "unbiased": value,
                "bayesian": by_bayes,
                "bounds": list(between),
            }
            if trials.per == "conversation":  # under the names of its source, too
                about |= conversation(case)
                about |= {metric: value, f"{metric}_ci_low": bayesian.ci_low, f"{metric}_ci_high": bayesian.ci_high}
            finding: Finding
            if value is None:
                why = f"{made}; k = {each.k} needs {each.k} determined trials"
                finding = Unscored(Why.INSUFFICIENT_EVIDENCE, why, about)
            else:
                finding = Score(min(1.0, max(0.0, value)), made, about, label=each.label)
            identity = Identity(f"task.{metric}", _VERSION, None, {"k": each.k, **settings})
            origin = Origin(metric, identity, EvaluatorInfo("math", _VERSION), None)
            yield from conclude(unit, [(origin, finding, 0.0)])


def repeated(correct: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    if not correct:
        return
    found = trials(correct)
    most = max(len(case.trials) for case in found.cases)
    if most > 1:
        yield from task_results(figures(found, [k for k in KS if k <= most]))


def suite_objects(found: Figures) -> Iterator[dict[str, Any]]:
    """Make JSON-ready results over all cases; ``metadata.case`` is ``None``."""
    settings = {"metric": found.trials.metric, "per": found.trials.per}
    for each in found.suite:
        for metric, estimates in ((AT, each.at), (POW, each.pow)):
            about = asdict(estimates)
            score = about.pop("value")
            yield {
                "metric": metric,
                "level": "task",
                "outcome": "unscored" if score is None else "scored",
                "score": score,
                "label": each.label,
                "metadata": {"case": None, "k": each.k, **settings, **about},
            }


@dataclass(frozen=True, slots=True)
class SuiteEstimate:
    """``value``: ``None`` unless all ``of`` cases have ``k`` determined trials.

    ``mean``: over the ``cases`` that do, with 95 % interval by ``method``.
    """

    value: float | None
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    cases: int
    of: int
    method: str


def suite(of: Callable[[int, int, int, Mode], PassEstimate], cases: Sequence[Counts], k: int) -> SuiteEstimate:
    found = [of(n, c, k, "unbiased").value for n, c in cases]
    known = [value for value in found if value is not None]
    if not known:
        return SuiteEstimate(None, None, None, None, 0, len(found), "")
    mean, (low, high, method) = statistics.fmean(known), interval(known)
    whole = mean if len(known) == len(found) else None
    return SuiteEstimate(whole, mean, low, high, len(known), len(found), method)


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, str]:
    """Return the 95 % interval of the mean of cases' shares (0..1, at least one), and its method."""
    mean = min(1.0, max(0.0, math.fsum(values) / len(values)))
    shares = np.asarray(values, dtype=np.float64)
    if len(values) < ENOUGH_CASES or np.ptp(shares) == 0.0:  # all bootstrap draws are equal, which is no certainty
        return *wilson(mean, len(values), normal_quantile()), "wilson"
    drawn = means(shares, np.ones(len(shares)), seed)
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high), "bootstrap"


def bounds(n: int, c: int, undetermined: int, k: int) -> tuple[Bounds, Bounds]:
    """Return the ranges of pass@k and pass^k over outcomes of ``undetermined`` trials, or ``None``."""
    low, high = (n + undetermined, c), (n + undetermined, c + undetermined)
    at, power = ((of(*low, k, "unbiased").value, of(*high, k, "unbiased").value) for of in (pass_at_k, pass_pow_k))
    return at, power


@dataclass(frozen=True, slots=True)
class PromotableCase:
    """A capability case. ``steady``: its interval of pass^k is high enough."""

    case: CaseOutcomes
    power: PassEstimate
    steady: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "case": self.case.id,
            "n": self.case.n,
            "c": self.case.c,
            "undetermined": self.case.undetermined,
            "pass_pow_k": self.power.median,
            "ci_low": self.power.ci_low,
            "ci_high": self.power.ci_high,
            "promote": self.steady,
        }


def promotable(found: CaseTrials, k: int, least: float) -> list[PromotableCase]:
    """Return all capability cases. Steady cases come first: the interval of pass^k is at or above ``least``."""
    candidates = []
    for case in found.cases:
        if case.kind == CAPABILITY:
            n = len(case.trials)  # undetermined trials count as failed, so they cannot promote a case
            power = pass_pow_k(n, case.c, k, "bayesian")
            candidates.append(PromotableCase(case, power, (power.ci_low or 0.0) >= least))
    return sorted(candidates, key=lambda each: (not each.steady, -(each.power.ci_low or 0.0)))
