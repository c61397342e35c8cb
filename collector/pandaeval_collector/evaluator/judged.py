"""The judged metrics: what a model has to be asked about a trace, and what comes of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pandaeval_collector.evaluator.asking import ask, refusal
from pandaeval_collector.evaluator.prepared import Preparation
from pandaeval_collector.evaluator.settings import JudgeSettings
from pandaeval_collector.evaluator.unit import trace_unit
from pandaeval_collector.judge.desk import Spent
from pandaeval_collector.judge.selection import Choice
from pandaeval_collector.metric import Texts, TraceContext, TraceMetric
from pandaeval_collector.result import Evaluator as By
from pandaeval_collector.result import Identity, Result, Unit, now
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace

PASSING = frozenset({Why.JUDGE_FAILED, Why.TIMEOUT, Why.OVER_BUDGET, Why.INVALID_VERDICT, Why.METRIC_ERROR})
"""Whys that another try may take away."""


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

    def concerns(self, trace: Trace, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Whether traces like this one are judged at all. ``attributes``: of its spans and their resources."""
        return self._judge.selection.concerns(trace.agent, trace.service, attributes)

    def questions(self, trace: Trace, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Results where no model has to be asked, and questions for all others."""
        unit = trace_unit(trace)
        # Of a conversation that no span names, a turn sees no more than the one before it.
        whole = trace.continues or trace.session_id or next(reversed(trace.responses), trace.trace_id)
        results: list[Result] = []
        questions: list[Question] = []
        for metric in self._metrics:
            choice = self._judge.selection.choose(metric.key, whole, suspicious)
            finding = self._before_asking(metric, trace, choice.included)
            question = self._question(metric, unit, choice)
            if finding is None:
                questions.append(question)
            else:
                results.append(self.answered(question, finding))
        return results, questions

    def answered(self, question: Question, finding: Finding, spent: Spent | None = None) -> Result:
        """The result of a question. What the provider or the budget kept from being answered has an id of its own, so
        that an answer at a later try is a new result."""
        metric, id_, spent = question.metric, question.id, spent or Spent()
        if isinstance(finding, Unscored) and finding.why in PASSING:
            depends = {**self._preparation.depends_on(metric, question.threshold), "why": finding.why.value}
            id_ = Identity(metric.key, metric.version, question.model, depends).of(question.unit)
        chosen = {"inclusion_probability": question.choice.probability, "in_sample": question.choice.in_sample}
        return Result(
            id=id_,
            metric=metric.name,
            unit=question.unit,
            finding=replace(finding, metadata={**finding.metadata, **chosen}),
            evaluator=By(metric.kind, metric.version, spent.model or question.model),
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
            return Unscored(Why.NOT_SAMPLED, "not in the sample (judge.sample)")
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
