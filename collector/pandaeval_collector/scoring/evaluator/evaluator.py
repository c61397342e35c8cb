"""Runs the metrics of a subject, one thread at a time.

An exception of a metric becomes ``unscored(metric_error)`` and affects no other result.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pandaeval_collector.analysis.embedding import Embedder, knows
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.base.result import DISMISSED, EXCUSED, OPEN, SUSPECT, Origin, Result, Unit, conclude
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator.judged import Judged, Question, applies, score_by_code
from pandaeval_collector.scoring.evaluator.one_metric import call_or_default, run_metric
from pandaeval_collector.scoring.evaluator.plan import MetricPlan
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.evaluator.units import trace_unit, turn_unit
from pandaeval_collector.scoring.metric import (
    JudgedSessionMetric,
    JudgedTurnMetric,
    Metric,
    SessionContext,
    SessionView,
    Texts,
    TraceContext,
    TraceMetric,
    TurnContext,
)
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.base.component_errors import EMBEDDER, ERRORS
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.turns import of_turn

RESPONSE = "trace.response"
"""The metric that reports utility calls, such as titles and summaries."""


class Evaluator:
    def __init__(self, embedder: Embedder, settings: EvaluatorSettings | None = None) -> None:
        self.embedder = embedder
        self.settings = settings or EvaluatorSettings()
        self.plan = plan = MetricPlan(registry(self.settings.modules), self.settings)
        always = [metric for metric in plan.metrics if not plan.waits(metric, in_session=True)]
        self._preparation = Preparation(self.settings, embedder, always)
        self.judged = Judged(plan, self._preparation)
        sessions = (*plan.sessions, *plan.judged(JudgedSessionMetric))
        self._sayable = {**plan.without_session(), **{metric.key: metric for metric in sessions}}
        self.explaining = frozenset(metric.name for metric in plan.explaining)
        """The names of the metrics that explain failures."""
        self.read_again = frozenset(metric.name for metric in plan.unsettled)
        """The names of the metrics that use what the earlier traces of a session held."""
        self._by_name = {metric.name: metric for metric in plan.traces}

    def threshold(self, metric: Metric) -> float:
        return self._preparation.of(metric).threshold

    def embed(self, traces: Iterable[Trace]) -> Texts:
        """Embed the requested texts in one batch.

        If the embedder fails for several traces, its error is raised. If it fails for a single trace, only results that
        need vectors are ``unscored(metric_error)``.
        """
        traces = list(traces)
        metrics = (*self.plan.alone, *(metric for metric, reads in self.plan.dependent if reads.answers))
        wanted: list[str] = []
        for trace in traces:
            for metric in metrics:
                if metric.texts is not None:
                    wanted += call_or_default(metric, metric.texts, trace, ())
        id_, bands = self.embedder.id, self.embedder.bands
        LIMIT.step = "embedding its texts"
        try:
            found = embed_texts(self.embedder, wanted)
        except Exception as error:  # an error of the embedder affects only results that need vectors
            ERRORS.note(EMBEDDER, id_, error)
            if len(traces) > 1:
                raise
            return Texts({}, frozenset(), id_, bands, error)
        return Texts(found.rows, found.chunked, id_, bands, known=knows(self.embedder))

    def by_itself(self, trace: Trace, texts: Texts, unit: Unit, is_judged: bool) -> list[Result]:
        """Return the results that need neither session nor judge. ``is_judged``: the trace goes to a judge."""
        if trace.utility:
            what = f"not evaluated: a {trace.utility} call of the application, which answers no user"
            return self.said_of(RESPONSE, unit, Assumed(what, {"utility": trace.utility}))
        found = self.trace(trace, texts, unit)
        found += self.turns(trace, is_judged)
        return self.explained(trace, unit, found)

    def trace(self, trace: Trace, texts: Texts, unit: Unit | None = None) -> list[Result]:
        """Return the results of metrics that read a single trace."""
        unit = unit or trace_unit(trace)
        metrics = self.plan.alone
        if trace.is_step:
            metrics = [metric for metric in metrics if metric.of_steps]
        return self._on_trace(metrics, trace, unit, texts, end_tokens=self.settings.end_tokens)

    def turns(self, trace: Trace, is_judged: bool) -> list[Result]:
        """Return the results of all turns that need no judge; none for a step.

        Includes code scores of judged metrics (``by_code``); if ``is_judged``, only of metrics that wait for a verdict.
        """
        coded = [] if len(trace.tool_calls) < 2 else self.plan.coded
        if is_judged:
            coded = [metric for metric in coded if self.plan.waits(metric, trace.session_id is not None)]
        if not (self.plan.turns or coded) or trace.is_step:
            return []
        results: list[Result] = []
        view = TurnView(trace)
        try:
            for index in range(len(trace.turns)):
                view = TurnView(of_turn(trace, index))  # without history, because most metrics need none
                if LIMIT.is_over:
                    raise OverTimeError
                results.extend(self._of_turn(trace, index, view, coded))
        except OverTimeError:  # earlier turns keep their results
            unit = turn_unit(view)
            done = {result.metric for result in results if result.unit.id == unit.id}
            for metric in (*self.plan.turns, *coded):
                if metric.name not in done:
                    results += self.said_of(metric.key, unit, Unscored(Why.TIMEOUT, LIMIT.reason))
        return results

    def _of_turn(self, trace: Trace, index: int, bare: TurnView, coded: Sequence[JudgedTurnMetric]) -> Iterator[Result]:
        scored = [metric for metric in coded if score_by_code(metric, bare) is not None]
        if not scored and not self.plan.turns:
            return
        view = turn_view(trace, index)
        metrics = [metric for metric in self.plan.turns if applies(metric, view)]
        yield from self._run(metrics, view, turn_unit(view), TurnContext)
        for metric in scored:
            if (result := self.judged.without_judge(metric, view)) is not None:
                yield result

    def explained(
        self,
        trace: Trace,
        unit: Unit,
        results: Sequence[Result],
        *,
        stand: Iterable[tuple[str, str, Sequence[str]]] = (),
        with_session: bool = False,
    ) -> list[Result]:
        """Return the results of a trace; if some fail, add explaining metrics and the blamed step.

        ``with_session``: the metrics have read the session's other traces; else results that the session may change
        are not explained. ``stand``: earlier failing results, see :meth:`blamed`.
        """
        others = [result for result in results if result.metric not in self.explaining]
        failing = [result for result in others if result.success is False]
        if not with_session and (trace.session_id is not None or trace.continues or trace.responses):
            failing = [result for result in failing if result.metric not in self.read_again]
        scored = [(result, result.finding) for result in failing if isinstance(result.finding, Score)]
        named = [(result.id, result.metric, finding.span_ids) for result, finding in scored]
        explaining = self.blamed(trace, unit, [*stand, *named])
        steps = [result.finding.metadata["step"] for result in explaining if result.finding.metadata.get("step")]
        if not steps:
            return others + explaining
        return [_with_blame(result, steps[0]) for result in others] + explaining

    def blamed(self, trace: Trace, unit: Unit, failing: Iterable[tuple[str, str, Sequence[str]]]) -> list[Result]:
        """Return the results that explain failing results, given by id, metric and spans."""
        wanted = [(self.plan.order.get(metric, 0), id_, metric, spans) for id_, metric, spans in failing if spans]
        if not self.plan.explaining or not wanted or trace.is_step:
            return []
        named: dict[str, list[str]] = {}
        evidence = hashlib.blake2b(digest_size=8)
        for _, id_, metric, span_ids in sorted(wanted, key=lambda result: result[:2]):
            named.setdefault(metric, []).extend(span_ids)
            evidence.update(id_.encode())
        unit = unit.with_evidence(f"{evidence.hexdigest()}:{trace.digest}")
        return self._on_trace(self.plan.explaining, trace, unit, failing=named)

    def set_aside(
        self, unit: Unit, reason: str, why: Why, metrics: Sequence[TraceMetric] | None = None
    ) -> list[Result]:
        """Return unscored results of ``metrics``; default: all of a single trace."""
        metrics = self.plan.alone if metrics is None else metrics
        return conclude(unit, [(self._preparation.of(each).origin, Unscored(why, reason), 0.0) for each in metrics])

    def with_others(
        self, metric: TraceMetric, trace: Trace, unit: Unit, texts: Texts | None = None, **more: Any
    ) -> list[Result]:
        """Return the result of a metric that reads the session.

        ``unit``: its evidence covers the traces read. ``more``: fields of :class:`TraceContext`.
        """
        return self._on_trace([metric], trace, unit, texts, **more)

    def unsettled(self, trace: Trace, results: Sequence[Result]) -> tuple[str, ...]:
        if trace.is_step or trace.forced:
            return ()
        findings = {result.metric: result.finding for result in results if result.unit.level == "trace"}
        pairs = [(metric.name, metric.reads and metric.reads.unsettled) for metric in self.plan.unsettled]
        return tuple(name for name, unsettled in pairs if unsettled and unsettled(trace, findings.get(name)))

    def said_of(self, key: str, unit: Unit, finding: Finding) -> list[Result]:
        """Return the result for a ``finding`` of the pipeline; none if the metric is disabled or the session answers
        it.
        """
        metric = self._sayable.get(key)
        if metric is None:
            return []
        origin = self._preparation.of(metric).origin
        if self.settings.judge is None and isinstance(metric, JudgedTurnMetric):
            origin = self._preparation.by_code(metric)
        return conclude(unit, [(origin, finding, 0.0)])

    def session(self, session: SessionView, unit: Unit) -> list[Result]:
        return self._run(self.plan.sessions, session, unit, self._session_context)

    def judged_session(self, session: SessionView, unit: Unit) -> tuple[list[Result], list[Question]]:
        """Return results that need no judge, and questions, for a closing session."""
        return self.judged.of_session(session, unit, self._session_context)

    def _session_context(self, threshold: float) -> SessionContext:
        settings, names = self.settings, frozenset(self._preparation.signals)
        judged = settings.judge is not None and not self.plan.lacks_signals
        return SessionContext(threshold, names, settings.weights, settings.extra_signals, judged)

    def signal_value(self, result: Result) -> float | None:
        """Return the score of a trace's result for session metrics.

        ``None``: open or dismissed. The signal setting ``raw`` uses every other score. With ``sure``, a failing result
        counts with its score, and other results count as 1.0 (without a calibration, not at all). Without a setting,
        excused and suspect results do not count, nor passed results if only failures count.
        """
        finding, metric = result.finding, self._by_name.get(result.metric)
        if not isinstance(finding, Score) or finding.label in OPEN or finding.label == DISMISSED:
            return None
        if metric is None or not metric.signal:
            passed = metric is not None and metric.signals_failures_only and result.success
            return None if passed or finding.label in (EXCUSED, SUSPECT) else finding.value
        if getattr(self.settings, metric.signal) == "raw" or result.success is False:
            return finding.value
        return None if metric.calibrated and metric.calibrated not in finding.metadata else 1.0

    def _on_trace(
        self, metrics: Sequence[TraceMetric], trace: Trace, unit: Unit, texts: Texts | None = None, **more: Any
    ) -> list[Result]:
        texts = texts or Texts({}, (), self.embedder.id, self.embedder.bands)
        context = partial(TraceContext, texts, **more)
        return self._run(metrics, trace, unit, context)

    def _run(
        self,
        metrics: Sequence[Metric],
        subject: Any,
        unit: Unit,
        context: Callable[[float], Any],
    ) -> list[Result]:
        findings: list[tuple[Origin, Finding, float]] = []
        for metric in metrics:
            threshold, origin = self._preparation.of(metric)
            started = time.perf_counter()
            finding = run_metric(metric, subject, context(threshold))
            if finding is not None:
                findings.append((origin, finding, (time.perf_counter() - started) * 1e3))
        return conclude(unit, findings) if findings else []


def _with_blame(result: Result, step: Any) -> Result:
    if result.success is not False:
        return result
    return replace(result, finding=replace(result.finding, metadata={**result.finding.metadata, "blame": step}))
