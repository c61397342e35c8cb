"""Prepares what all results of a metric share: its threshold, what produced them, and the settings that go into their
ids."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.embedding import Embedder, knows
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.base.concluding import Origin
from pandaeval_collector.base.result import EvaluatorInfo, Identity
from pandaeval_collector.judge.prompt import ENGLISH, PROMPT_VERSION
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.metric import Metric, Texts, TraceMetric
from pandaeval_otel.base.component_errors import EMBEDDER, ERRORS, METRIC
from pandaeval_otel.model import Trace


# The vectors of all texts that metrics want, in one batch.
def _of(metric: TraceMetric, trace: Trace) -> Sequence[str]:
    """Returns the texts that a metric wants of a trace; none if it raises, so that it fails when it asks for one."""
    try:
        return () if metric.texts is None else metric.texts(trace)
    except Exception as error:  # noqa: BLE001 - a metric's bug must cost its own result, and no other's
        ERRORS.note(METRIC, metric.key, error)
        return ()


def vectors(embedder: Embedder, metrics: Sequence[TraceMetric], traces: Iterable[Trace]) -> Texts:
    """Embeds the texts that ``metrics`` want of ``traces``. If that fails for a single trace, asking for one of its
    vectors raises."""
    traces = list(traces)
    wanted = [text for trace in traces for metric in metrics if metric.texts is not None for text in _of(metric, trace)]
    try:
        found = embed_texts(embedder, wanted)
    except Exception as error:  # whatever an embedder raises costs the results that need it, and no others
        ERRORS.note(EMBEDDER, embedder.id, error)
        if len(traces) > 1:
            raise
        return Texts({}, frozenset(), embedder.id, embedder.bands, error)
    return Texts.of(found.rows, found.chunked, embedder.id, embedder.bands, knows(embedder))


# The models that were learned from labels, read from a folder and again when it changes.
_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0
"""Seconds after which the folder is looked at again: a model is in use soon after it was written, without a restart."""


class LearnedModels:
    """Reads the models of one folder, by level and agent. One thread."""

    def __init__(self, folder: str | None) -> None:
        """``folder`` may not exist yet; ``None``: there are no models."""
        self._folder = None if folder is None else Path(folder)
        self._seen: tuple[tuple[str, int], ...] = ()
        self._looked = -LOOK_EVERY
        self._found: dict[tuple[str, str], LearnedModel] = {}

    def of(self, level: str, agent: str) -> LearnedModel | None:
        """Returns the model of an agent at a level (``session`` or ``trace``), if there is one."""
        self._look()
        return self._found.get((level, agent))

    @property
    def there(self) -> bool:
        """Whether the folder holds any model."""
        self._look()
        return bool(self._found)

    def _look(self) -> None:
        if self._folder is not None and time.monotonic() - self._looked >= LOOK_EVERY:
            self._looked = time.monotonic()
            files = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
            seen = tuple((str(file), _changed(file)) for file in files)
            if seen != self._seen:
                self._seen = seen
                self._found = {(each.level, each.agent): each for file in files if (each := _model(file)) is not None}


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _model(file: Path) -> LearnedModel | None:
    """Reads a model's file; logs one that cannot be read, and returns ``None``."""
    try:
        return LearnedModel.of_json(file.read_bytes())
    except (OSError, ValueError) as error:
        _log.error("%s is left out: %s", file, error)
        return None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A metric with its threshold, and ``origin``, which all its results share."""

    metric: Metric[Any, Any]
    threshold: float
    origin: Origin


class Preparation:
    """Prepares each metric once. ``metrics``: all enabled ones; ``names``: the trace metrics that sessions may read."""

    def __init__(self, settings: EvaluatorSettings, embedder: Embedder, metrics: Sequence[Metric[Any, Any]]) -> None:
        self.settings, self.embedder = settings, embedder
        self._judged = [metric.key for metric in metrics if metric.level == "trace" and metric.kind == "llm"]
        of_traces = [metric for metric in metrics if metric.level == "trace"]
        self.names = frozenset(metric.name for metric in of_traces if not (metric.learned or metric.explains))
        self._prepared: dict[str, Prepared] = {}

    def of(self, metric: Metric[Any, Any]) -> Prepared:
        """Returns the metric, prepared."""
        return self._prepared.get(metric.key) or self._prepare(metric)

    def of_each(self, metrics: Sequence[Metric[Any, Any]]) -> list[Prepared]:
        """Returns the metrics, prepared, in their order."""
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
        """Returns the settings that a result depends on, which become part of its id."""
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
