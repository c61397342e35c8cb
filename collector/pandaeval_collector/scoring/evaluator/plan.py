"""Selects the metrics to run, by subject."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from pandaeval_collector.scoring.evaluator.settings import VERDICT, EvaluatorSettings
from pandaeval_collector.scoring.metric import (
    JudgedMetric,
    JudgedTraceMetric,
    JudgedTurnMetric,
    Metric,
    SessionMetric,
    SessionReads,
    TraceMetric,
    TurnMetric,
)

M = TypeVar("M", bound=Metric)


def running_metrics(
    registry: Mapping[str, Metric], enabled: Collection[str] | None
) -> tuple[tuple[Metric, ...], frozenset[str]]:
    """Return the metrics to run, in registry order, and the keys of metrics that run only for session metrics.

    ``enabled``: metric keys; ``None`` for all of the ``registry``.
    """
    if enabled is None:
        return tuple(registry.values()), frozenset()
    wanted = [metric for key, metric in registry.items() if key in enabled]
    read = {name for metric in wanted if isinstance(metric, SessionMetric) for name in metric.signals}
    traces = [metric for metric in registry.values() if isinstance(metric, TraceMetric)]
    silent = frozenset(metric.key for metric in traces if metric.name in read and metric.key not in enabled)
    return tuple(metric for key, metric in registry.items() if key in enabled or key in silent), silent


class MetricPlan:
    """The metrics that run.

    ``order``: positions by name. ``silent``: keys of metrics that run only for session metrics. ``alone``: of a single
    trace. ``dependent``: read other traces, comparisons first, later traces last. ``unsettled``: use earlier traces.
    ``coded``: judged metrics that code can score. ``lacks_signals``: signals wait for a verdict.
    """

    def __init__(self, registry: Mapping[str, Metric], settings: EvaluatorSettings) -> None:
        wanted, self.silent = running_metrics(registry, settings.enabled)
        self._has_judge = settings.judge is not None
        self._is_selective = settings.judge is not None and settings.judge.detail != "all"
        self._always = {*settings.thresholds, f"trace.{VERDICT}"}
        self._led = {level for level in ("trace", "session") if any(m.key == f"{level}.{VERDICT}" for m in wanted)}
        self._wanted = wanted
        self.order = {metric.name: place for place, metric in enumerate(wanted)}
        self.metrics = [metric for metric in wanted if self._has_judge or not isinstance(metric, JudgedMetric)]
        self.traces = self._of(TraceMetric)
        self.alone = [metric for metric in self.traces if not (metric.needs_session or metric.explains)]
        self.explaining = [metric for metric in self.traces if metric.explains]
        self.dependent = self._dependent(settings.shares_sessions)
        self.unsettled: list[TraceMetric] = []
        if settings.shares_sessions:
            self.unsettled = [metric for metric in self.alone if metric.reads and metric.reads.unsettled]
        self.turns = self._of(TurnMetric)
        self.coded = [metric for metric in self._of(JudgedTurnMetric) if metric.by_code is not None]
        self.sessions = self._of(SessionMetric)
        read = {name for metric in self.sessions for name in metric.signals}
        self.lacks_signals = any(metric.name in read and self.waits(metric, True) for metric in wanted)

    def waits(self, metric: Metric, in_session: bool) -> bool:
        """Return whether a question waits for the verdict. Metrics with a configured threshold never wait."""
        asked = isinstance(metric, JudgedTraceMetric | JudgedTurnMetric) and metric.key not in self._always
        return self._is_selective and asked and ("session" if in_session else "trace") in self._led

    def judged(self, level: type[M]) -> list[M]:
        return self._of(level) if self._has_judge else []

    def without_session(self) -> Mapping[str, Metric]:
        """Return, by key, the metrics for traces and turns without a session."""
        metrics: list[Metric] = [metric for metric in self.traces if not metric.needs_session]
        metrics += [*self.turns, *self.judged(JudgedTraceMetric)]
        metrics += self.judged(JudgedTurnMetric) or self.coded
        return {metric.key: metric for metric in metrics}

    def _of(self, level: type[M]) -> list[M]:
        return [metric for metric in self._wanted if isinstance(metric, level)]

    def _dependent(self, shares_sessions: bool) -> list[tuple[TraceMetric, SessionReads]]:
        reading = [(metric, metric.reads) for metric in self.traces if metric.reads is not None]
        usable = [(metric, reads) for metric, reads in reading if shares_sessions or reads.answers]
        return sorted(usable, key=lambda pair: (pair[1].later, not pair[1].answers))
