"""Prepares what all results of a metric share: its threshold, what produced them, and the settings that go into their
ids."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pandaeval_collector.analysis.embedding import Embedder
from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin
from pandaeval_collector.judge.prompt import ENGLISH, PROMPT_VERSION
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.metric import Metric

_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0
"""Seconds after which the folder is looked at again: a model is in use soon after it was written, without a restart."""


class LearnedModels:
    """The models that were learned from labels, by level (``session`` or ``trace``) and agent; reads their folder again
    when it changes. One thread."""

    def __init__(self, folder: str | None) -> None:
        """``folder`` may not exist yet; ``None``: there are no models."""
        self._folder = None if folder is None else Path(folder)
        self._seen: list[tuple[Path, int]] = []
        self._looked = -LOOK_EVERY
        self._found: dict[tuple[str, str], LearnedModel] = {}

    def all(self) -> Mapping[tuple[str, str], LearnedModel]:
        """Returns the models; logs a file that cannot be read, and leaves it out."""
        if self._folder is None or time.monotonic() - self._looked < LOOK_EVERY:
            return self._found
        self._looked = time.monotonic()
        seen: list[tuple[Path, int]] = []
        for file in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []:
            with contextlib.suppress(OSError):
                seen.append((file, file.stat().st_mtime_ns))
        if seen != self._seen:
            self._seen, self._found = seen, {}
            for file, _ in seen:
                try:
                    model = LearnedModel.of_json(file.read_bytes())
                except (OSError, ValueError) as error:
                    _log.error("%s is left out: %s", file, error)
                else:
                    self._found[model.level, model.agent] = model
        return self._found


class Prepared(NamedTuple):
    """A metric's threshold, and ``origin``, which all its results share."""

    threshold: float
    origin: Origin


class Preparation:
    """Prepares each metric once. ``metrics``: all enabled ones; ``names``: the trace metrics that sessions may read."""

    def __init__(self, settings: EvaluatorSettings, embedder: Embedder, metrics: Sequence[Metric[Any, Any]]) -> None:
        self.settings, self.embedder = settings, embedder
        of_traces = [metric for metric in metrics if metric.level == "trace"]
        self._of_traces = [metric for metric in of_traces if not (metric.learned or metric.explains)]
        self.names = frozenset(metric.name for metric in self._of_traces)
        self._prepared: dict[str, Prepared] = {}

    def of(self, metric: Metric[Any, Any]) -> Prepared:
        """Returns the metric, prepared."""
        known = self._prepared.get(metric.key)
        if known is not None:
            return known
        judge = self.settings.judge
        model = self.embedder.id if metric.kind == "embedding" else None
        if metric.kind == "llm" and judge is not None:
            model = judge.model_of(metric.key)
        configured = self.settings.thresholds.get(metric.key)
        threshold = metric.threshold_for(self.embedder.bands) if configured is None else configured
        identity = Identity(metric.key, metric.version, model, self.depends_on(metric, threshold))
        by = EvaluatorInfo(metric.kind, metric.version, model)
        prepared = Prepared(threshold, Origin(metric.name, identity, by, None if metric.explains else threshold))
        self._prepared[metric.key] = prepared
        return prepared

    def by_code(self, metric: Metric[Any, Any]) -> Origin:
        """Returns what results of a judged metric that code made share."""
        threshold = self.of(metric).threshold
        identity = Identity(metric.key, metric.version, None, {**metric.settings, "threshold": threshold})
        return Origin(metric.name, identity, EvaluatorInfo("code", metric.version), threshold)

    def depends_on(self, metric: Metric[Any, Any], threshold: float) -> Mapping[str, Any]:
        """Returns the settings that a result depends on, which become part of its id: of a session metric those of the
        trace metrics that it reads (``Metric.signals``; all, if it names none), and of no others."""
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
            if metric.part is not None and not judge.shares_turns:
                depends["calls"] = judge.turn_calls
        elif metric.level == "session" and metric.kind != "llm":
            read = [each for each in self._of_traces if not metric.signals or each.name in metric.signals]
            judged = [each.key for each in read if each.kind == "llm"]
            if judge is not None and judged:
                depends["judge"] = sorted({judge.model_of(key) for key in judged})
                if judge.votes > 1:
                    depends["votes"] = judge.votes
                if heeded := sorted(
                    f"{each.metric} {each.agent} {each.text}" for each in judge.guidelines if each.metric in judged
                ):
                    depends["guidelines"] = heeded
            depends |= {
                "weights": dict(settings.weights),
                "extra_signals": sorted(settings.extra_signals),
                "coherence_signal": settings.coherence_signal,
                "signals": sorted(each.name for each in read),
                "embedder": self.embedder.id,
            }
        return depends
