"""Runs the metrics of a subject: embeds the texts that they need in one batch, calls them, and makes results of their
findings.

One thread calls an evaluator at a time. A metric that raises gives an ``unscored(metric_error)`` result of its own and
affects no other.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pandaeval_collector.analysis.embedding import Embedder, knows
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.base.result import EXCUSED, SUSPECT, Origin, Result, Unit, conclude
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator.judged import Judged, Question, applies, score_by_code
from pandaeval_collector.scoring.evaluator.one_metric import (
    ask,
    attempt,
    refusal,
    running_metrics,
    trace_unit,
    turn_unit,
)
from pandaeval_collector.scoring.evaluator.prepared import EvaluatorSettings, Preparation
from pandaeval_collector.scoring.metric import (
    Metric,
    SessionContext,
    SessionMetric,
    SessionView,
    Texts,
    TraceContext,
    TraceMetric,
    TurnContext,
    TurnMetric,
)
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.base.component_errors import EMBEDDER, ERRORS
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.turns import of_turn

RESPONSE = "trace.response"
"""The metric that says of a trace beside the conversation what it is."""


class Evaluator:
    """Runs the enabled metrics with one embedder."""

    def __init__(self, embedder: Embedder, settings: EvaluatorSettings | None = None) -> None:
        self.embedder = embedder
        self.settings = settings or EvaluatorSettings()
        judge = self.settings.judge
        wanted, self.silent = running_metrics(registry(self.settings.modules), self.settings.enabled)
        """``silent``: keys of the metrics whose results are for session metrics alone."""
        metrics = [metric for metric in wanted if metric.kind != "llm" or judge is not None]
        self._order = {metric.name: place for place, metric in enumerate(wanted)}
        self._preparation = Preparation(self.settings, embedder, metrics)
        judged = Judged([metric for metric in metrics if metric.kind == "llm"], self._preparation)
        self._judged = judged
        self.asked, self.judges, self.judged = judged.keys, judged.concerns, judged.questions
        self.judged_turn, self.judged_turns = judged.of_turn, judged.of_turns
        self.together, self.drawn, self.answered = judged.together, judged.drawn, judged.answered
        inline = [metric for metric in metrics if metric.kind != "llm"]
        self._trace: list[TraceMetric] = [
            m for m in inline if m.level == "trace" and not (m.needs_session or m.explains)
        ]
        self._turn: list[TurnMetric] = [m for m in inline if m.level == "turn"]
        self._coded: list[TurnMetric] = [m for m in wanted if m.level == "turn" and m.by_code is not None]
        """Judged metrics that code can score, also those without a judge."""
        self._explaining: list[TraceMetric] = [m for m in inline if m.explains]
        self.explaining = frozenset(metric.name for metric in self._explaining)
        """The names of the metrics that explain failures."""
        alone = [m for m in wanted if m.level in ("trace", "turn") and not m.needs_session]
        self._without_session = {m.key: m for m in alone if m.kind != "llm" or judge is not None or m.by_code}
        shared = self.settings.shares_sessions
        traces = [m for m in metrics if m.level == "trace"]
        self.dependent = sorted(
            ((m, m.reads) for m in traces if m.reads is not None and (shared or m.needs_session)),
            key=lambda each: (each[1].later, not each[1].answers),
        )
        """The metrics that read other traces of the session, and which: those that compare answers first, those that
        read later traces last."""
        self._unsettled: list[TraceMetric] = [m for m in self._trace if shared and m.unsettled is not None]
        self.read_again = frozenset(metric.name for metric in self._unsettled)
        """The names of the metrics that use what the earlier traces of a session held."""
        self._session: list[SessionMetric] = [m for m in inline if m.level == "session"]
        self._calibrated = {m.name: m for m in metrics if m.level == "trace" and m.calibrated is not None}
        self._only_failures = {m.name for m in metrics if m.level == "trace" and m.signals_failures_only}

    def threshold(self, metric: Metric[Any, Any]) -> float:
        """Returns the threshold from which a metric's results pass."""
        return self._preparation.of(metric).threshold

    def embed(self, traces: Iterable[Trace]) -> Texts:
        """Embeds all texts that the enabled metrics want of these traces. If the embedder fails for a single trace,
        asking for a vector of its texts raises, so that only the results that need it are
        ``unscored(metric_error)``."""
        traces = list(traces)
        metrics = (*self._trace, *(metric for metric, _ in self.dependent if metric.needs_session))
        wanted: list[str] = []
        for trace in traces:
            for metric in metrics:
                if metric.texts is not None:
                    wanted += attempt(metric, metric.texts, trace, ())
        id_, bands = self.embedder.id, self.embedder.bands
        LIMIT.step("embedding its texts")
        try:
            found = embed_texts(self.embedder, wanted)
        except Exception as error:  # whatever an embedder raises costs the results that need it, and no others
            ERRORS.note(EMBEDDER, id_, error)
            if len(traces) > 1:
                raise
            return Texts({}, frozenset(), id_, bands, error)
        return Texts(found.rows, found.chunked, id_, bands, known=knows(self.embedder))

    def by_itself(self, trace: Trace, texts: Texts, unit: Unit, is_judged: bool) -> list[Result]:
        """Returns all results of a trace and its turns that need neither its session nor a judge. ``is_judged``:
        whether a judge is asked about the trace."""
        if trace.utility:
            what = f"a call beside the conversation ({trace.utility}): it answers no user, and counts in no rate"
            return self.said_of(RESPONSE, unit, Assumed(what, {"utility": trace.utility}))
        found = self.trace(trace, texts, unit)
        found += self.turns(trace, is_judged)
        return self.explained(trace, unit, found)

    def trace(self, trace: Trace, texts: Texts, unit: Unit | None = None) -> list[Result]:
        """Returns the results of metrics that look at one trace alone. ``unit``: the trace's, if the caller has it."""
        unit = unit or trace_unit(trace)
        metrics = [metric for metric in self._trace if metric.of_steps] if trace.is_step else self._trace
        return self._on_trace(metrics, trace, unit, texts, end_tokens=self.settings.end_tokens)

    def turns(self, trace: Trace, is_judged: bool) -> list[Result]:
        """Returns the results of each turn that need no judge; none of a step. ``is_judged``: whether a judge is asked
        about the trace; else the results include judged metrics that code can score (``Metric.by_code``)."""
        coded = [] if is_judged or len(trace.tool_calls) < 2 else self._coded
        if not (self._turn or coded) or trace.is_step:
            return []
        results: list[Result] = []
        refused = refusal(trace)
        bare = None
        try:
            for index in range(len(trace.turns)):
                bare = TurnView(of_turn(trace, index))  # most have nothing to say, and need no history for it
                if LIMIT.is_over:
                    raise OverTimeError
                by_code = coded if refused is None else []
                found = [metric for metric in by_code if score_by_code(metric, bare) is not None]
                if not found and not self._turn:
                    continue
                view = turn_view(trace, index)
                for metric in self._turn:
                    threshold, origin = self._preparation.of(metric)
                    started = time.perf_counter()
                    said = ask(metric, view, TurnContext(threshold), refused) if applies(metric, view) else None
                    if said is not None:
                        results += conclude(turn_unit(view), [(origin, said, (time.perf_counter() - started) * 1e3)])
                for metric in found:
                    results += [result] if (result := self._judged.without_judge(metric, view)) is not None else []
        except OverTimeError:  # the turns before it keep their results
            unit = turn_unit(bare or TurnView(trace))
            done = {result.metric for result in results if result.unit.id == unit.id}
            for metric in (each for each in (*self._turn, *coded) if each.name not in done):
                results += self.said_of(metric.key, unit, Unscored(Why.TIMEOUT, LIMIT.reason))
        return results

    def explained(
        self,
        trace: Trace,
        unit: Unit,
        results: Sequence[Result],
        *,
        stand: Iterable[tuple[str, str, Sequence[str]]] = (),
        with_session: bool = False,
    ) -> list[Result]:
        """Returns the results of a trace and, if one fails, of metrics that explain why, whose step failing results
        also name. ``with_session``: they were read with the other traces of the session; else those that these may
        change are not explained yet; ``stand``: further ones that failed before, see :meth:`blamed`."""
        found = [each for each in results if each.metric not in self.explaining]
        failing = [each for each in found if each.success is False]
        if not with_session and (trace.session_id is not None or trace.continues or trace.responses):
            failing = [each for each in failing if each.metric not in self.read_again]
        scored = [(each, each.finding) for each in failing if isinstance(each.finding, Score)]
        named = [(each.id, each.metric, finding.span_ids) for each, finding in scored]
        told = self.blamed(trace, unit, [*stand, *named])
        step = next((each.finding.metadata["step"] for each in told if each.finding.metadata.get("step")), None)
        for at, each in enumerate(found if step is not None else ()):
            if each.success is False:
                blamed = replace(each.finding, metadata={**each.finding.metadata, "blame": step})
                found[at] = replace(each, finding=blamed)
        return found + told

    def blamed(self, trace: Trace, unit: Unit, failing: Iterable[tuple[str, str, Sequence[str]]]) -> list[Result]:
        """Returns the results that explain failing ones: of these the id, the metric and the spans that they name."""
        wanted = (each for each in failing if each[2])
        known = sorted(wanted, key=lambda each: (self._order.get(each[1], 0), each[0]))
        if not self._explaining or not known or trace.is_step:
            return []
        named: dict[str, list[str]] = {}
        for _, metric, span_ids in known:
            named.setdefault(metric, []).extend(span_ids)
        evidence = hashlib.blake2b("".join(id_ for id_, *_ in known).encode(), digest_size=8).hexdigest()
        unit = unit.with_evidence(f"{evidence}:{trace.digest}")
        return self._on_trace(self._explaining, trace, unit, failing=named)

    def set_aside(
        self, unit: Unit, reason: str, why: Why = Why.METRIC_ERROR, metrics: Sequence[TraceMetric] | None = None
    ) -> list[Result]:
        """Returns unscored results of ``metrics``, if not given of all that look at one trace alone."""
        asked = self._trace if metrics is None else metrics
        return conclude(unit, [(self._preparation.of(each).origin, Unscored(why, reason), 0.0) for each in asked])

    def with_others(
        self, metric: TraceMetric, trace: Trace, unit: Unit, texts: Texts | None = None, **more: Any
    ) -> list[Result]:
        """Returns the result of a :attr:`dependent` metric with ``more`` of the session, see :class:`TraceContext`; the
        evidence of ``unit`` covers the traces that it comes from. A metric that compares answers needs no spans."""
        return self._on_trace([metric], trace, unit, texts, **more)

    def unsettled(self, trace: Trace, results: Sequence[Result]) -> tuple[str, ...]:
        """Returns the names of the metrics whose ``results`` of a trace alone its session may change."""
        if trace.is_step or trace.forced or refusal(trace) is not None:
            return ()
        found = {result.metric: result.finding for result in results if result.unit.level == "trace"}
        return tuple(
            m.name for m in self._unsettled if m.unsettled is not None and m.unsettled(trace, found.get(m.name))
        )

    def said_of(self, key: str, unit: Unit, finding: Finding) -> list[Result]:
        """Returns the result of a metric of traces or turns with a ``finding`` that the line makes for it; none if the
        metric is disabled, or one that the session answers."""
        metric = self._without_session.get(key)
        if metric is None:
            return []
        is_by_code = metric.by_code is not None and self.settings.judge is None
        origin = self._preparation.by_code(metric) if is_by_code else self._preparation.of(metric).origin
        return conclude(unit, [(origin, finding, 0.0)])

    def session(self, session: SessionView, unit: Unit) -> list[Result]:
        """Returns the results of the session metrics that ask no model."""
        return self._run(self._session, session, unit, self._session_context, None)

    def judged_session(self, session: SessionView, unit: Unit, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Runs the judged metrics of a session that closes: results that need no model, and questions for the
        others."""
        return self._judged.of_session(session, unit, suspicious, self._session_context)

    def _session_context(self, threshold: float) -> SessionContext:
        settings, names, judged = self.settings, self._preparation.names, self.settings.judge is not None
        return SessionContext(threshold, names, settings.weights, settings.extra_signals, judged)

    def signal_value(self, result: Result) -> float | None:
        """Returns the value of a trace's result for session metrics: its score, or for metrics with a calibrated scale
        and ``coherence_signal: sure`` the value there of a sure one. ``None`` for a result without such a value, for
        one that is excused, for a suspect without such a scale, and for one that passed where the metric counts by its
        failures only."""
        finding = result.finding
        if not isinstance(finding, Score) or finding.label == EXCUSED:
            return None
        if result.success and result.metric in self._only_failures:
            return None
        metric = self._calibrated.get(result.metric)
        if metric is None or metric.calibrated is None:
            return None if finding.label == SUSPECT else finding.value
        if self.settings.coherence_signal == "raw":
            return finding.value
        if metric.sure is None or not finding.metadata.get(metric.sure):
            return None
        calibrated: float | None = finding.metadata.get(metric.calibrated)
        return calibrated

    def _on_trace(
        self, metrics: Sequence[TraceMetric], trace: Trace, unit: Unit, texts: Texts | None = None, **more: Any
    ) -> list[Result]:
        """Runs metrics of traces; ``more``: what they are told, see :class:`TraceContext`."""
        texts = texts or Texts({}, (), self.embedder.id, self.embedder.bands)
        context = partial(TraceContext, texts, **more)
        return self._run(metrics, trace, unit, context, refusal(trace))

    def _run(
        self,
        metrics: Sequence[Metric[Any, Any]],
        subject: Any,
        unit: Unit,
        context: Callable[[float], Any],
        refused: Unscored | None,
    ) -> list[Result]:
        found: list[tuple[Origin, Finding, float]] = []
        for metric in metrics:
            threshold, origin = self._preparation.of(metric)
            started = time.perf_counter()
            finding = ask(metric, subject, context(threshold), refused)
            if finding is not None:
                found.append((origin, finding, (time.perf_counter() - started) * 1e3))
        return conclude(unit, found) if found else []
