"""The judged metrics of a trace: the questions that a model has to answer, and the results of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pandaeval_collector.evaluator.asking import ask, refusal
from pandaeval_collector.evaluator.prepared import Preparation
from pandaeval_collector.evaluator.provenance import provenance
from pandaeval_collector.evaluator.settings import JudgeSettings
from pandaeval_collector.evaluator.unit import trace_unit
from pandaeval_collector.judge.desk import Spent
from pandaeval_collector.judge.selection import Choice
from pandaeval_collector.metric import Texts, TraceContext, TraceMetric
from pandaeval_collector.result import EvaluatorInfo, Identity, Result, Unit, now
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace

PASSING = frozenset({Why.JUDGE_FAILED, Why.TIMEOUT, Why.OVER_BUDGET, Why.INVALID_VERDICT, Why.METRIC_ERROR})
"""Whys that another try may take away."""
_NOT_SAMPLED = Unscored(Why.NOT_SAMPLED, "not in the sample (judge.sample)")


@dataclass(frozen=True, slots=True)
class Question:
    """A judged metric about one trace, to be asked: ``id`` is that of the result to be."""

    id: str
    metric: TraceMetric
    unit: Unit
    model: str
    threshold: float
    choice: Choice = field(default_factory=Choice)


class Judged:
    """The judged metrics that are enabled, with the settings of their judge."""

    def __init__(self, judge: JudgeSettings, metrics: Sequence[TraceMetric], preparation: Preparation) -> None:
        self._judge, self._metrics, self._preparation = judge, metrics, preparation

    @property
    def keys(self) -> list[str]:
        """Of its metrics."""
        return [metric.key for metric in self._metrics]

    def concerns(self, trace: Trace, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Whether traces like this one are judged at all. ``attributes``: of its spans and their resources."""
        return self._judge.selection.concerns(trace.agent, trace.service, attributes)

    def questions(self, trace: Trace, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Results where no model has to be asked, and questions for all others."""
        unit = trace_unit(trace)
        results: list[Result] = []
        questions: list[Question] = []
        for metric in self._metrics:
            choice = self._choice(metric, trace, suspicious)
            finding = self._before_asking(metric, trace, choice.included)
            question = self._question(metric, unit, choice)
            if finding is None:
                questions.append(question)
            else:
                results.append(self.answered(question, finding))
        return results, questions

    def drawn(self, results: Sequence[Result], unit: Unit, suspicious: bool) -> tuple[list[Result], dict[str, Choice]]:
        """The same questions for a trace that was asked about before its session was known, which ``unit`` names if
        there is one: the results that were given without asking, and the choices by metric key. Those not chosen are
        ``not_sampled``."""
        whole = unit.session_id or unit.trace_id
        choices = {m.key: self._judge.selection.choose(m.key, whole, suspicious) for m in self._metrics}
        found = [self._again(result, choices.get(f"{unit.level}.{result.metric}")) for result in results]
        given = {result.metric for result in results}
        left_out = [m for m in self._metrics if not choices[m.key].included and m.name not in given]
        return [*found, *(self._not_sampled(m, unit, choices[m.key]) for m in left_out)], choices

    def _again(self, result: Result, choice: Choice | None) -> Result:
        if choice is None:
            return result
        if not choice.included:
            metric = next(metric for metric in self._metrics if metric.name == result.metric)
            return self._not_sampled(metric, result.unit, choice)
        return replace(result, finding=_with(result.finding, choice, {}))

    def _not_sampled(self, metric: TraceMetric, unit: Unit, choice: Choice) -> Result:
        return self.answered(self._question(metric, unit, choice), _NOT_SAMPLED)

    def _choice(self, metric: TraceMetric, trace: Trace, suspicious: bool) -> Choice:
        """A turn of a conversation that no span names is drawn with its session, once that is known."""
        if trace.session_id is None and trace.continues:
            return Choice()
        whole = trace.session_id or next(reversed(trace.responses), trace.trace_id)
        return self._judge.selection.choose(metric.key, whole, suspicious)

    def answered(self, question: Question, finding: Finding, spent: Spent | None = None) -> Result:
        """The result of a question. What the provider or the budget kept from being answered has an id of its own, so
        that an answer at a later try is a new result."""
        metric, id_, spent = question.metric, question.id, spent or Spent()
        if isinstance(finding, Unscored) and finding.why in PASSING:
            depends = {**self._preparation.depends_on(metric, question.threshold), "why": finding.why.value}
            id_ = Identity(metric.key, metric.version, question.model, depends).of(question.unit)
        return Result(
            id=id_,
            metric=metric.name,
            unit=question.unit,
            finding=_with(finding, question.choice, provenance(finding, spent, question.model)),
            evaluator=EvaluatorInfo(metric.kind, metric.version, spent.model or question.model),
            threshold=question.threshold,
            revision=question.unit.revision,
            final=True,
            duration_ms=round(spent.seconds * 1e3, 3),
            time=now(),
            cost_usd=spent.cost_usd,
            tokens=spent.tokens,
        )

    def _before_asking(self, metric: TraceMetric, trace: Trace, sampled: bool) -> Finding | None:
        if not sampled:
            return _NOT_SAMPLED
        refused = refusal(trace, self._preparation.settings.score_fragments)
        if refused is None and trace.forced:
            refused = Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
        if refused is not None:
            return refused
        embedder = self._preparation.embedder
        texts = Texts({}, frozenset(), embedder.id, embedder.bands)
        return ask(metric, trace, TraceContext(texts, self._preparation.of(metric).threshold), None)

    def _question(self, metric: TraceMetric, unit: Unit, choice: Choice) -> Question:
        prepared = self._preparation.of(metric)
        model = self._judge.model_of(metric.key)
        return Question(prepared.identity.of(unit), metric, unit, model, prepared.threshold, choice)


def _with(finding: Finding, choice: Choice, more: Mapping[str, Any]) -> Finding:
    chosen = {"inclusion_probability": choice.probability, "in_sample": choice.in_sample}
    return replace(finding, metadata={**finding.metadata, **chosen, **more})
