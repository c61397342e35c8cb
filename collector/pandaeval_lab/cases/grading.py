"""Grades trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin, Result, Unit, conclude
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import AnswerCost
from pandaeval_collector.scoring.evaluator.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.one_metric import run_metric
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.evaluator.units import trace_unit
from pandaeval_collector.scoring.metric import JudgedTrialMetric, TrialMetric
from pandaeval_lab.cases.graders import CORRECT, Grader, custom, declared_graders, known_graders, short
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cases.trial import Graded, Trial, TrialContext

_NO_JUDGE = "no judge is configured; set --model or judge.model"


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    finding: Finding
    spent: AnswerCost


class TrialGrader:
    """Runs the graders of a suite. Works on any thread, but not concurrently."""

    def __init__(
        self, evaluator: Evaluator, suite: Suite, heard: Callable[[Sequence[Mapping[str, Any]]], None] | None = None
    ) -> None:
        """``heard``: receives all results of each trial as JSON objects, also of metrics that were not selected."""
        self.suite, self._settings, self._heard = suite, evaluator.settings, heard
        known = known_graders(self._settings.modules)
        self._preparation = Preparation(self._settings, evaluator.embedder, known)
        self._correct = next(metric for metric in known if metric.name == CORRECT)
        others = [metric for metric in known if metric.name != CORRECT]
        self._inline = [metric for metric in others if isinstance(metric, TrialMetric)]
        self.judged = [metric for metric in others if isinstance(metric, JudgedTrialMetric)]
        """The graders that ask a judge."""
        self._custom = custom(suite.cases)
        every = (*self._inline, *self.judged, *self._custom.values(), self._correct)
        self._by_name: Mapping[str, Grader] = {metric.name: metric for metric in every}
        keys = {metric.key for metric in known}
        enabled = self._settings.enabled
        self._shown = keys if enabled is None or not keys & set(enabled) else keys & set(enabled)

    def model_of(self, metric: Grader) -> str:
        assert self._settings.judge is not None, "a judge is asked"
        return self._settings.judge.model_of(metric.key)

    def before_asking(self, metric: Grader, trial: Trial) -> Finding | None:
        """Return a judged grader's finding if it needs no model, else ``None``."""
        return run_metric(metric, trial, TrialContext(self._threshold(metric, trial.case)), self._refusal(trial))

    def results(self, trial: Trial, verdicts: Mapping[str, TrialVerdict] | None = None) -> list[Result]:
        given = verdicts or {}
        findings = {name: verdict.finding for name, verdict in given.items()}
        judged = [metric for metric in self.judged if metric.name in given]
        results = []
        for metric in judged:  # a later answer is a new result
            finding, spent = given[metric.name].finding, given[metric.name].spent
            depends = {"why": finding.why.value} if isinstance(finding, Unscored) else {}
            made = self._result(trial, metric, finding, depends, spent.seconds, spent.model)
            results.append(replace(made, cost_usd=spent.cost_usd, tokens=spent.tokens))
        graders = [*self._inline, *(self._custom[name] for name in trial.case.graders if name in self._custom)]
        results += [r for metric in graders if (r := self._graded(trial, metric, findings)) is not None]
        graded = tuple(self._outcomes(trial, results))
        correct = self._graded(trial, self._correct, findings, graded)
        results += [] if correct is None else [correct]
        if self._heard is not None:
            self._heard([result.to_dict() for result in (*results, *self._silent(trial, graded, results))])
        own = {metric.name for metric in self._custom.values()}
        return [each for each in results if f"trial.{each.metric}" in self._shown or each.metric in own]

    def _silent(self, trial: Trial, graded: Sequence[Graded], results: Sequence[Result]) -> Iterator[Result]:
        spoke = {result.metric for result in results}
        why = {each.name: each.reason for each in graded if each.success is None and each.name not in spoke}
        if CORRECT not in spoke:
            why[CORRECT] = "the case contains no expectation that a run can fail"
        for name, metric in self._by_name.items():
            if name in why:
                finding = Unscored(Why.INSUFFICIENT_EVIDENCE, why[name])
                yield self._result(trial, metric, finding, {"untold": finding.reason})

    def _graded(
        self, trial: Trial, metric: Grader, judged: Mapping[str, Finding], graded: tuple[Graded, ...] = ()
    ) -> Result | None:
        started = time.perf_counter()
        of_parts = (self._by_name[name] for name in ("answer_correctness", "tool_correctness"))
        limits = {each.name: self._threshold(each, trial.case) for each in of_parts}
        context = TrialContext(self._threshold(metric, trial.case), judged, graded, limits, self._settings.end_tokens)
        finding = run_metric(metric, trial, context, None if metric is self._correct else self._refusal(trial))
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
        return self._result(trial, metric, finding, depends, time.perf_counter() - started)

    def _result(
        self,
        trial: Trial,
        metric: Grader,
        finding: Finding,
        depends: Mapping[str, Any],
        seconds: float = 0.0,
        model: str | None = None,
    ) -> Result:
        case, threshold, unit = trial.case, self._threshold(metric, trial.case), trial_unit(trial)
        about = {
            "case": case.id,
            "trial": trial.name,
            "layer": metric.layer,
            "case_kind": case.kind,
            **({"scenario": True} if case.scenario else {}),
            "gates": metric.name in {short(name) for name in declared_graders(case)},
            "traces": [trace.trace_id for trace in trial.traces],
            **({"suite": self.suite.name} if self.suite.name else {}),
            **({"mock_calls": trial.mock_calls} if metric is self._correct and trial.mock_calls else {}),
            **({"past_mocks": trial.past_mocks} if metric is self._correct and trial.past_mocks else {}),
        }
        rests_on = {**self._preparation.depends_on(metric, threshold), **depends}
        identity = Identity(metric.key, metric.version, model, rests_on)
        origin = Origin(metric.name, identity, EvaluatorInfo(metric.kind, metric.version, model), threshold)
        whole = replace(finding, metadata={**finding.metadata, **about})
        return conclude(unit, [(origin, whole, seconds * 1e3)])[0]

    def _outcomes(self, trial: Trial, results: Sequence[Result]) -> Iterator[Graded]:
        gates = {short(name) for name in declared_graders(trial.case)}
        found = {result.metric: result for result in results}
        for name, result in found.items():
            yield Graded(name, self._by_name[name].layer, result.success, name in gates, result.finding.reason)
        for name in sorted(gates - found.keys()):
            if name == "tool_correctness" and trial.case.expected is None:
                continue  # it decides only if tools are declared
            metric = self._by_name[name]
            if name == "tool_correctness" and self._refusal(trial) is None:
                yield Graded(name, metric.layer, True, True, "no call is expected, and none was made")
                continue
            why = _NO_JUDGE if metric.kind == "llm" else "it does not apply to this trial"
            yield Graded(name, metric.layer, None, True, why)

    def _threshold(self, metric: Grader, case: Case) -> float:
        return case.thresholds.get(metric.name, self._preparation.of(metric).threshold)

    def _refusal(self, trial: Trial) -> Unscored | None:
        if trial.spoilt is not None:
            return trial.spoilt
        if any(trace.forced for trace in trial.traces):
            return Unscored(Why.INCOMPLETE_TRACE, "a trace of the trial was closed before its root span ended")
        return None


def trial_unit(trial: Trial) -> Unit:
    """Make the unit of a trial's results, with its last trace."""
    ids = tuple(f"{trace.trace_id}:{trace.root_span_id}" for trace in trial.traces)
    unit = trace_unit(trial.last, trial.evidence)
    return replace(unit, level="trial", trace_ids=ids if len(ids) > 1 else ())
