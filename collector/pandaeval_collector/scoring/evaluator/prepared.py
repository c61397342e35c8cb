"""Prepares what all results of a metric share: its threshold, what produced them, and the settings that go into their
ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.embedding import Embedder
from pandaeval_collector.base.concluding import Origin
from pandaeval_collector.base.result import EvaluatorInfo, Identity
from pandaeval_collector.judge.prompt import ENGLISH, PROMPT_VERSION
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.metric import Metric


@dataclass(frozen=True, slots=True)
class Prepared:
    """A metric with all that its results share, ``origin``, and the threshold that it is given."""

    metric: Metric[Any, Any]
    threshold: float
    origin: Origin


class Preparation:
    """Prepares each metric once. ``metrics``: all that are enabled; ``names``: those that look at traces and that
    sessions may read."""

    def __init__(self, settings: EvaluatorSettings, embedder: Embedder, metrics: Sequence[Metric[Any, Any]]) -> None:
        self.settings, self.embedder = settings, embedder
        self._judged = [metric.key for metric in metrics if metric.level == "trace" and metric.kind == "llm"]
        of_traces = [metric for metric in metrics if metric.level == "trace"]
        self.names = frozenset(metric.name for metric in of_traces if not (metric.learned or metric.explains))
        self._prepared: dict[str, Prepared] = {}

    def of(self, metric: Metric[Any, Any]) -> Prepared:
        """The metric, prepared."""
        return self._prepared.get(metric.key) or self._prepare(metric)

    def of_each(self, metrics: Sequence[Metric[Any, Any]]) -> list[Prepared]:
        """The metrics, prepared, in their order."""
        known = self._prepared
        return [known.get(metric.key) or self._prepare(metric) for metric in metrics]

    def _prepare(self, metric: Metric[Any, Any]) -> Prepared:
        judge = self.settings.judge
        model = self.embedder.id if metric.kind == "embedding" else None
        if metric.kind == "llm" and judge is not None:
            model = judge.model_of(metric.key)
        threshold = self._threshold(metric)
        identity = Identity(metric.key, metric.version, model, self.depends_on(metric, threshold))
        by = EvaluatorInfo(metric.kind, metric.version, model)
        origin = Origin(metric.name, identity, by, None if metric.explains else threshold)
        prepared = Prepared(metric, threshold, origin)
        self._prepared[metric.key] = prepared
        return prepared

    def _threshold(self, metric: Metric[Any, Any]) -> float:
        configured = self.settings.thresholds.get(metric.key)
        return metric.threshold_for(self.embedder.bands) if configured is None else configured

    def depends_on(self, metric: Metric[Any, Any], threshold: float) -> Mapping[str, Any]:
        """The settings that a result depends on, as they enter its id."""
        settings = self.settings
        depends: dict[str, Any] = {**metric.settings, "threshold": threshold, "fragments": settings.score_fragments}
        if not settings.score_rootless:
            depends["rootless"] = False
        if settings.end_tokens and "response" in (metric.name, *metric.signals):
            depends["end_tokens"] = sorted(settings.end_tokens)
        judge = settings.judge
        if metric.kind == "llm" and judge is not None:
            depends |= {"prompt": PROMPT_VERSION, "secrets": judge.secrets}
            if judge.language != ENGLISH:
                depends["language"] = judge.language
            if asked_with := judge.asked_with(judge.model_of(metric.key)):
                depends["parameters"] = asked_with
            if judge.pii or judge.custom:
                depends["hidden"] = ["pii"] * judge.pii + list(judge.custom)
            if judge.votes > 1:
                depends["votes"] = judge.votes
            if (step := judge.cascade.get(metric.key)) is not None:
                depends["cascade"] = [step.model, step.low, step.high]
            if metric.part is not None and not judge.shares_turns:
                depends["calls"] = judge.turn_calls
        elif metric.level == "session":
            if judge is not None and self._judged:
                depends["judge"] = sorted({judge.model_of(key) for key in self._judged})
                if judge.votes > 1:
                    depends["votes"] = judge.votes
                if heeded := sorted(f"{each.metric} {each.agent} {each.text}" for each in judge.guidelines):
                    depends["guidelines"] = heeded
            depends |= {
                "weights": dict(settings.weights),
                "extra_signals": sorted(settings.extra_signals),
                "coherence_signal": settings.coherence_signal,
                "signals": sorted(self.names),
                "embedder": self.embedder.id,
            }
        return depends
