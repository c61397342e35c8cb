"""The threshold, origin and identity that all results of a metric share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pandaeval_collector.analysis.embedding import Embedder
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.metric import JudgedMetric, Metric, SessionMetric, TraceMetric


class Prepared(NamedTuple):
    threshold: float
    origin: Origin


class Preparation:
    """Prepares each metric once. ``signals``: trace metrics that sessions may read, by name."""

    def __init__(self, settings: EvaluatorSettings, embedder: Embedder, metrics: Iterable[Metric]) -> None:
        self.settings, self.embedder = settings, embedder
        traces = [metric for metric in metrics if metric.level == "trace"]
        self.signals = {metric.name: metric for metric in traces if not _explains(metric)}
        self._prepared: dict[str, Prepared] = {}

    def of(self, metric: Metric) -> Prepared:
        """Return a metric's preparation. Session metrics are prepared each time, because rulings can change."""
        prepared = self._prepared.get(metric.key)
        if prepared is None or isinstance(metric, SessionMetric):
            prepared = self._prepared[metric.key] = self._prepare(metric)
        return prepared

    def _prepare(self, metric: Metric) -> Prepared:
        threshold = self.settings.thresholds.get(metric.key)
        if threshold is None:
            threshold = metric.threshold_for(self.embedder.bands)
        model = self._model(metric)
        identity = Identity(metric.key, metric.version, model, self.depends_on(metric, threshold))
        by = EvaluatorInfo(metric.kind, metric.version, model)
        return Prepared(threshold, Origin(metric.name, identity, by, None if _explains(metric) else threshold))

    def _model(self, metric: Metric) -> str | None:
        if metric.kind == "embedding":
            return self.embedder.id
        judge = self.settings.judge
        if judge is None or not isinstance(metric, JudgedMetric):
            return None
        return judge.model_of(metric.key)

    def by_code(self, metric: Metric) -> Origin:
        threshold = self.of(metric).threshold
        identity = Identity(metric.key, metric.version, None, {**metric.settings, "threshold": threshold})
        return Origin(metric.name, identity, EvaluatorInfo("code", metric.version), threshold)

    def depends_on(self, metric: Metric, threshold: float) -> Mapping[str, Any]:
        """Return the settings that become part of the result id."""
        own, judge = {**metric.settings, "threshold": threshold}, self.settings.judge
        if isinstance(metric, SessionMetric):
            return own | self.settings.identity(metric.name, *metric.signals) | self._identity_of_signals(metric)
        if isinstance(metric, JudgedMetric) and judge is not None:
            own |= judge.identity(metric.name)
        return own | self.settings.identity(metric.name)

    def _identity_of_signals(self, metric: SessionMetric) -> dict[str, Any]:
        read = [self.signals[name] for name in metric.signals or self.signals if name in self.signals]
        identity: dict[str, Any] = {"signals": sorted(signal.name for signal in read), "embedder": self.embedder.id}
        if (judge := self.settings.judge) is not None:
            identity |= judge.identity_of_signals([signal.key for signal in read if isinstance(signal, JudgedMetric)])
        return identity | self.settings.identity_of_signals()


def _explains(metric: Metric) -> bool:
    return isinstance(metric, TraceMetric) and metric.explains
