"""Grades trials: runs the metrics of level trial, and the functions that cases name, and makes results of what they
find."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_collector.base.result import EvaluatorInfo, Identity, Result, Unit, now
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.cases.graders import CORRECT, custom, declared, short
from pandaeval_collector.scoring.cases.model import Case, Suite
from pandaeval_collector.scoring.cases.trial import Graded, Trial, TrialContext
from pandaeval_collector.scoring.evaluator.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.one_metric import ask, refusal, trace_unit
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry

Grader = Metric[Trial, TrialContext]
_UNKNOWN = Why.INSUFFICIENT_EVIDENCE
_NO_JUDGE = "no judge was asked (evaluate --cases, with --model or judge.model)"


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """A judge's finding about a trial, with its model and costs."""

    finding: Finding
    model: str = ""
    cost_usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0


class TrialGrader:
    """Runs the graders of a suite. Any thread, one at a time."""

    def __init__(
        self, evaluator: Evaluator, suite: Suite, heard: Callable[[Sequence[Mapping[str, Any]]], None] | None = None
    ) -> None:
        """``heard`` gets all results of each trial, JSON-ready, also those that nobody asked for but that decided
        ``trial_correct``."""
        self.suite, self._settings, self._heard = suite, evaluator.settings, heard
        known = [metric for metric in registry(self._settings.modules).values() if metric.level == "trial"]
        self._preparation = Preparation(self._settings, evaluator.embedder, known)
        self._correct = next(metric for metric in known if metric.name == CORRECT)
        others = [metric for metric in known if metric.name != CORRECT]
        self._inline: list[Grader] = [metric for metric in others if metric.kind != "llm"]
        self.judged: list[Grader] = [metric for metric in others if metric.kind == "llm"]
        """The graders that ask a judge."""
        self._custom = custom(suite.cases)
        self._all = (*self._inline, *self.judged, *self._custom.values(), self._correct)
        keys = {metric.key for metric in known}
        enabled = self._settings.enabled
        self._shown = keys if enabled is None or not keys & set(enabled) else keys & set(enabled)

    def model_of(self, metric: Grader) -> str | None:
        """Returns the model that a judged grader asks; ``None`` if none is configured."""
        judge = self._settings.judge
        return None if judge is None else judge.model_of(metric.key)

    def before_asking(self, metric: Grader, trial: Trial) -> Finding | None:
        """Returns a judged grader's finding if it needs no model; ``None``: a judge has to be asked."""
        return ask(metric, trial, TrialContext(self._threshold(metric, trial.case)), self._refusal(trial))

    def results(self, trial: Trial, verdicts: Mapping[str, TrialVerdict] | None = None) -> list[Result]:
        """Grades a trial; returns the results that are asked for. ``verdicts``: of the judged graders, by name."""
        unit = trial_unit(trial)
        given = dict(verdicts or {})
        findings = {name: verdict.finding for name, verdict in given.items()}
        results: list[Result] = []
        for metric in self.judged:
            if (verdict := given.get(metric.name)) is not None:
                # An answer at a later try is a new result.
                why = {"why": verdict.finding.why.value} if isinstance(verdict.finding, Unscored) else {}
                threshold, model = self._threshold(metric, trial.case), verdict.model or self.model_of(metric)
                made = self._made(metric, unit, verdict.finding, threshold, verdict.seconds * 1e3, model, **why)
                results.append(replace(made, cost_usd=verdict.cost_usd, tokens=verdict.tokens))
        graders = [*self._inline, *(self._custom[name] for name in trial.case.graders if name in self._custom)]
        results += [r for metric in graders if (r := self._graded(trial, unit, metric, findings)) is not None]
        graded = tuple(self._outcomes(trial, declared(trial.case), results))
        correct = self._graded(trial, unit, self._correct, findings, graded)
        results += [] if correct is None else [correct]
        ids = [trace.trace_id for trace in trial.traces]
        told = [self._with(result, trial.case, trial.name, ids) for result in results]
        if self._heard is not None:
            # For listeners, also of graders that gave no result and left the trial undecided.
            spoke = {result.metric for result in results}
            why = {each.name: each.said for each in graded if each.success is None and each.name not in spoke}
            if CORRECT not in spoke:
                why[CORRECT] = "the case expects nothing that a run could fail"
            silent = [
                self._untold(metric, trial.case, trial.name, unit, ids, Unscored(_UNKNOWN, why[metric.name]))
                for metric in self._all
                if metric.name in why
            ]
            self._heard([result.to_dict() for result in (*told, *silent)])
        return [result for result in told if self._is_shown(result.metric)]

    def untold(
        self,
        case: Case,
        name: str,
        unit: Unit,
        traces: Sequence[str],
        why: str,
        metrics: Collection[str] = (CORRECT,),
        **about: str,
    ) -> list[Result]:
        """Returns results without a score for a trial that cannot be graded. ``unit``: of its last trace; ``why``: the
        reason, for the results of ``metrics``; ``about``: their further metadata."""
        finding = Unscored(_UNKNOWN, why, about)
        shown = [metric for metric in self._all if metric.name in metrics and self._is_shown(metric.name)]
        return [self._untold(metric, case, name, unit, traces, finding) for metric in shown]

    def _untold(
        self, metric: Grader, case: Case, name: str, unit: Unit, traces: Sequence[str], finding: Unscored
    ) -> Result:
        unit, threshold = replace(unit, level="trial"), self._threshold(metric, case)
        return self._with(self._made(metric, unit, finding, threshold, 0.0, untold=finding.reason), case, name, traces)

    def _made(
        self,
        metric: Grader,
        unit: Unit,
        finding: Finding,
        threshold: float,
        took_ms: float,
        model: str | None = None,
        **depends: Any,
    ) -> Result:
        """Makes a result, whose id also holds what it ``depends`` on."""
        settings = {**self._preparation.depends_on(metric, threshold), **depends}
        id_ = Identity(metric.key, metric.version, model, settings).of(unit)
        by, took_ms = EvaluatorInfo(metric.kind, metric.version, model), round(took_ms, 3)
        return Result(id_, metric.name, unit, finding, by, threshold, unit.revision, True, took_ms, now())

    def _is_shown(self, name: str) -> bool:
        return f"trial.{name}" in self._shown or name in {short(each) for each in self._custom}

    def _with(self, result: Result, case: Case, name: str, traces: Sequence[str]) -> Result:
        """Returns the result with metadata that tell which trial it is about."""
        about = {
            "case": case.id,
            "trial": name,
            "layer": self._layer(result.metric),
            "case_kind": case.kind,
            "gates": result.metric in {short(each) for each in declared(case)},
            "traces": [*traces],
            **({"suite": self.suite.name} if self.suite.name else {}),
        }
        return replace(result, finding=replace(result.finding, metadata={**result.finding.metadata, **about}))

    def _graded(
        self,
        trial: Trial,
        unit: Unit,
        metric: Grader,
        judged: Mapping[str, Finding],
        graded: tuple[Graded, ...] = (),
    ) -> Result | None:
        threshold = self._threshold(metric, trial.case)
        started = time.perf_counter()
        known = {each.name: each for each in (*self._inline, *self.judged)}
        limits = {
            name: self._threshold(known[name], trial.case) if name in known else 1.0
            for name in ("answer_correctness", "tool_correctness")
        }
        context = TrialContext(threshold, judged, graded, limits)
        finding = ask(metric, trial, context, None if metric is self._correct else self._refusal(trial))
        if finding is None:
            return None
        depends: dict[str, Any] = {}
        if judged:
            depends["judged"] = {
                name: each.value if isinstance(each, Score) else getattr(each, "why", "assumed")
                for name, each in judged.items()
            }
        if graded:
            depends["graded"] = [[each.name, each.success, each.gates] for each in graded]
        return self._made(metric, unit, finding, threshold, (time.perf_counter() - started) * 1e3, **depends)

    def _outcomes(self, trial: Trial, names: tuple[str, ...], results: list[Result]) -> Iterator[Graded]:
        """Yields the outcome of each grader; undetermined for declared graders without a result."""
        gates = {short(name) for name in names}
        found = {result.metric: result for result in results}
        for name, result in found.items():
            yield Graded(name, self._layer(name), result.success, name in gates, result.finding.reason)
        for name in sorted(gates - found.keys()):
            if name == "tool_correctness" and trial.expected is None:
                continue  # it decides only where tools are declared
            if name == "tool_correctness" and self._refusal(trial) is None:
                yield Graded(name, self._layer(name), True, True, "no call is expected, and none was made")
                continue
            judged = any(metric.name == name for metric in self.judged)
            said = _NO_JUDGE if judged else "it does not apply to this trial"
            yield Graded(name, self._layer(name), None, True, said)

    def _layer(self, name: str) -> str:
        return next((metric.layer for metric in self._all if metric.name == name), "outcome")

    def _threshold(self, metric: Grader, case: Case) -> float:
        own = case.thresholds.get(metric.name)
        return self._preparation.of(metric).threshold if own is None else own

    def _refusal(self, trial: Trial) -> Unscored | None:
        for trace in trial.traces:
            if trace.forced or refusal(trace, self._settings) is not None:
                return Unscored(Why.INCOMPLETE_TRACE, "a trace of the trial was closed before its root span ended")
        return None


def trial_unit(trial: Trial) -> Unit:
    """Makes the unit of a trial's results, for which its last trace stands."""
    ids = tuple(f"{trace.trace_id}:{trace.root_span_id}" for trace in trial.traces)
    unit = trace_unit(trial.last, trial.evidence)
    return replace(unit, level="trial", trace_ids=ids if len(ids) > 1 else ())
