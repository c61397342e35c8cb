"""Runs the metrics of a subject: embeds what they need in one batch, calls them, and makes results of what they say.

One thread calls an evaluator at a time. A metric that raises makes its own result ``unscored(metric_error)`` and harms
nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.embedding import Embedder
from pandaeval_collector.embedding.text import embed_texts
from pandaeval_collector.judge.desk import Spent
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.selection import Choice, Selection
from pandaeval_collector.metric import (
    EarlierOutput,
    Metric,
    SessionContext,
    SessionMetric,
    SessionView,
    Texts,
    TraceContext,
    TraceMetric,
    registry,
)
from pandaeval_collector.result import Evaluator as By
from pandaeval_collector.result import Identity, Result, Unit, now
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace

_log = logging.getLogger(__name__)

PASSING = frozenset({Why.JUDGE_FAILED, Why.TIMEOUT, Why.OVER_BUDGET, Why.INVALID_VERDICT, Why.METRIC_ERROR})
"""Whys that another try may take away."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Who judges, and what of it enters the results. ``models``: others than ``model``, by metric key;
    ``selection``: about what; ``delay``: seconds between the close of a trace and its judgement; ``secrets``: whether
    they are taken out before, as are personal data (``pii``) and what functions of the user's own (``custom``, each
    ``module:function``) find."""

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    delay: float = 30.0
    secrets: bool = True
    pii: bool = False
    custom: tuple[str, ...] = ()

    def model_of(self, key: str) -> str:
        return self.models.get(key, self.model)


@dataclass(frozen=True, slots=True)
class Question:
    """A judged metric about one trace, to be asked: ``id`` is that of the result to be."""

    id: str
    metric: TraceMetric
    unit: Unit
    model: str
    threshold: float
    choice: Choice = field(default_factory=Choice)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A metric with all that its results share."""

    metric: Metric[Any, Any]
    threshold: float
    by: By
    identity: Identity


@dataclass(frozen=True, slots=True)
class Settings:
    """What is configured about scoring. ``enabled``: metric keys, or ``None`` for all; ``thresholds``: by key."""

    enabled: Collection[str] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_signals: tuple[str, ...] = ("error", "tool_loop")
    coherence_signal: str = "calibrated"
    score_fragments: bool = False
    judge: JudgeSettings | None = None
    """``None``: judged metrics are switched off."""


class Evaluator:
    """The enabled metrics with one embedder."""

    def __init__(self, embedder: Embedder, settings: Settings | None = None) -> None:
        self.embedder = embedder
        self.settings = settings or Settings()
        enabled = self.settings.enabled
        metrics = [metric for key, metric in registry().items() if enabled is None or key in enabled]
        metrics = [metric for metric in metrics if metric.kind != "llm" or self.settings.judge is not None]
        self._judged: list[TraceMetric] = [m for m in metrics if m.level == "trace" and m.kind == "llm"]
        metrics_inline = [metric for metric in metrics if metric.kind != "llm"]
        self._trace: list[TraceMetric] = [m for m in metrics_inline if m.level == "trace" and not m.needs_session]
        self._in_session: list[TraceMetric] = [m for m in metrics if m.level == "trace" and m.needs_session]
        self._session: list[SessionMetric] = [m for m in metrics if m.level == "session"]
        self._enabled_names = frozenset(m.name for m in metrics if m.level == "trace")
        self._prepared: dict[str, _Prepared] = {}

    def embed(self, traces: Iterable[Trace]) -> Texts:
        """The vectors of all texts that the enabled metrics want of these traces. If they cannot be had for a single
        trace, asking for one of them raises: the results that need it are ``unscored(metric_error)``, no others."""
        traces = list(traces)
        wanted = (
            text
            for trace in traces
            for metric in (*self._trace, *self._in_session)
            if metric.texts is not None
            for text in metric.texts(trace)
        )
        try:
            found = embed_texts(self.embedder, wanted)
        except Exception as error:
            if len(traces) > 1:
                raise
            _log.exception("texts could not be embedded")
            return Texts(_NoRows(error), frozenset(), self.embedder.id, self.embedder.bands)
        return Texts.of(found.rows, found.chunked, self.embedder.id, self.embedder.bands)

    def trace(self, trace: Trace, texts: Texts) -> list[Result]:
        """Results of the metrics that look at one trace alone."""
        unit = trace_unit(trace)
        return self._run(self._trace, trace, unit, lambda t: TraceContext(texts, t), self._refusal(trace))

    def judges(self, trace: Trace, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Whether traces like this one are judged at all. ``attributes``: of its spans and their resources."""
        judge = self.settings.judge
        return judge is not None and judge.selection.concerns(trace.agent, trace.service, attributes)

    def judged(self, trace: Trace, suspicious: bool = False) -> tuple[list[Result], list[Question]]:
        """The judged metrics: results where no model has to be asked, and questions for all others."""
        judge = self.settings.judge
        if judge is None or not self._judged:
            return [], []
        unit = trace_unit(trace)
        results: list[Result] = []
        questions: list[Question] = []
        for metric in self._judged:
            choice = judge.selection.choose(metric.key, trace.session_id or trace.trace_id, suspicious)
            finding = self._before_asking(metric, trace, choice.included)
            question = self._question(metric, unit, judge, choice)
            if finding is None:
                questions.append(question)
            else:
                results.append(self.answered(question, finding))
        return results, questions

    def answered(self, question: Question, finding: Finding, spent: Spent | None = None) -> Result:
        """The result of a question. What the provider or the budget kept from being answered has an id of its own, so
        that an answer at a later try is a new result."""
        metric, judge = question.metric, self.settings.judge
        assert judge is not None
        id_, spent = question.id, spent or Spent()
        if isinstance(finding, Unscored) and finding.why in PASSING:
            depends = {**self._depends_on(metric, question.threshold), "why": finding.why.value}
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
        refusal = self._refusal(trace)
        if refusal is None and trace.forced:
            refusal = Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
        if refusal is not None:
            return refusal
        texts = Texts({}, frozenset(), self.embedder.id, self.embedder.bands)
        return _ask(metric, trace, TraceContext(texts, self._threshold(metric)), None)

    def _question(self, metric: TraceMetric, unit: Unit, judge: JudgeSettings, choice: Choice) -> Question:
        prepared = self._prepared.get(metric.key) or self._prepare(metric)
        model = judge.model_of(metric.key)
        return Question(prepared.identity.of(unit), metric, unit, model, prepared.threshold, choice)

    def in_session(self, trace: Trace, texts: Texts, earlier: tuple[EarlierOutput, ...], evidence: str) -> list[Result]:
        """Results of the metrics that compare a trace with its session; ``evidence`` covers the traces compared."""
        unit = trace_unit(trace, evidence)
        return self._run(self._in_session, trace, unit, lambda t: TraceContext(texts, t, earlier), self._refusal(trace))

    def session(self, session: SessionView, unit: Unit) -> list[Result]:
        """Results of the session metrics."""
        settings = self.settings

        def context(threshold: float) -> SessionContext:
            return SessionContext(threshold, self._enabled_names, settings.weights, settings.extra_signals)

        return self._run(self._session, session, unit, context, None)

    def _refusal(self, trace: Trace) -> Unscored | None:
        if trace.fragment and not self.settings.score_fragments:
            return Unscored(
                Why.INCOMPLETE_TRACE,
                "only a part of a trace over several services came here (close.score_fragments scores such parts)",
            )
        return None

    def _run(
        self,
        metrics: Sequence[Metric[Any, Any]],
        subject: Any,
        unit: Unit,
        context: Callable[[float], Any],
        refusal: Unscored | None,
    ) -> list[Result]:
        results = []
        concluded = now()
        for metric in metrics:
            prepared = self._prepared.get(metric.key) or self._prepare(metric)
            started = time.perf_counter()
            finding = _ask(metric, subject, context(prepared.threshold), refusal)
            if finding is not None:
                elapsed = (time.perf_counter() - started) * 1e3
                results.append(_result(prepared, unit, finding, elapsed, concluded))
        return results

    def _prepare(self, metric: Metric[Any, Any]) -> _Prepared:
        judge = self.settings.judge
        model = self.embedder.id if metric.kind == "embedding" else None
        if metric.kind == "llm" and judge is not None:
            model = judge.model_of(metric.key)
        threshold = self._threshold(metric)
        identity = Identity(metric.key, metric.version, model, self._depends_on(metric, threshold))
        prepared = _Prepared(metric, threshold, By(metric.kind, metric.version, model), identity)
        self._prepared[metric.key] = prepared
        return prepared

    def _threshold(self, metric: Metric[Any, Any]) -> float:
        configured = self.settings.thresholds.get(metric.key)
        return metric.threshold_for(self.embedder.bands) if configured is None else configured

    def _depends_on(self, metric: Metric[Any, Any], threshold: float) -> Mapping[str, Any]:
        """The settings that a result depends on, as they enter its id."""
        settings = self.settings
        depends: dict[str, Any] = {**metric.settings, "threshold": threshold, "fragments": settings.score_fragments}
        judge = settings.judge
        if metric.kind == "llm" and judge is not None:
            depends |= {"prompt": PROMPT_VERSION, "secrets": judge.secrets}
            if judge.pii or judge.custom:
                depends["hidden"] = ["pii"] * judge.pii + list(judge.custom)
        if metric.level == "session":
            if judge is not None and self._judged:
                depends["judge"] = sorted({judge.model_of(each.key) for each in self._judged})
            depends |= {
                "weights": dict(settings.weights),
                "extra_signals": sorted(settings.extra_signals),
                "coherence_signal": settings.coherence_signal,
                "signals": sorted(self._enabled_names),
                "embedder": self.embedder.id,
            }
        return depends


class _NoRows(dict[str, NDArray[np.float32]]):
    """Stands for vectors that could not be computed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def __missing__(self, text: str) -> NDArray[np.float32]:
        raise self._error


def _ask(metric: Metric[Any, Any], subject: Any, context: Any, refusal: Unscored | None) -> Finding | None:
    try:
        finding = metric.evaluate(subject, context)
    except Exception as error:  # noqa: BLE001 - a metric's bug must cost one result, not the line
        _log.exception("metric %s failed", metric.key)
        finding = Unscored(Why.METRIC_ERROR, f"{type(error).__name__}: {error}"[:500])
    return finding if finding is None or refusal is None else refusal


def _result(prepared: _Prepared, unit: Unit, finding: Finding, duration_ms: float, concluded: datetime) -> Result:
    return Result(
        id=prepared.identity.of(unit),
        metric=prepared.metric.name,
        unit=unit,
        finding=finding,
        evaluator=prepared.by,
        threshold=prepared.threshold,
        revision=unit.revision,
        final=True,
        duration_ms=round(duration_ms, 3),
        time=concluded,
    )


def trace_unit(trace: Trace, evidence: str | None = None) -> Unit:
    """The unit of a trace: its evaluated span is the outermost agent's."""
    root = next((span for span in trace.spans if span.span_id == trace.root_span_id), None)
    return Unit(
        level="trace",
        id=trace.trace_id,
        trace_id=trace.trace_id,
        span_id=trace.root_span_id,
        session_id=trace.session_id,
        agent=trace.agent,
        service=trace.service,
        environment=trace.environment,
        evidence=evidence or trace.digest,
        revision=trace.revision,
        trigger=trace.trigger.value,
        late_spans=trace.late_spans,
        response_id=trace.response_id,
        end_ns=root.end_ns if root is not None else trace.end_ns,
        sampled=trace.sampled,
    )
