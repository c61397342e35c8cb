"""The settings of scoring and judging, independent of the configuration file; and what all results of a metric share by
them: its threshold, what produced them, and the settings that go into their ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pandaeval_collector.analysis.embedding import Embedder
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin
from pandaeval_collector.base.time_limit import TRACE_SECONDS
from pandaeval_collector.judge.call import answer_parameters
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.rubric import Guidance, Guideline, guidance
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.scoring.metric import Metric


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges which traces, and what is redacted before. ``models``: overrides of ``model`` by metric key;
    ``selection``: the traces to judge; ``delay``: seconds between the close of a trace and its judgement; ``secrets``,
    ``pii``: whether secrets and personal data are redacted; ``custom``: the user's functions that redact more, each
    ``module:function``; ``correctness``: whether it is asked about sessions alone or about each of their traces too;
    ``parameters``: litellm's arguments of each call; ``guidelines``: added to questions."""

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    delay: float = 30.0
    secrets: bool = True
    pii: bool = False
    custom: tuple[str, ...] = ()
    correctness: Literal["session", "trace"] = "session"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    guidelines: tuple[Guideline, ...] = ()

    def model_of(self, key: str) -> str:
        return self.models.get(key, self.model)

    def guidance(self, metric: Metric[Any, Any], agent: str) -> Guidance:
        """Returns the guidelines for a metric's question about a run of an agent."""
        if not self.guidelines:
            return Guidance()
        return guidance(self.guidelines, metric.key, metric.asks, agent)

    @property
    def answer_parameters(self) -> str:
        """The parameters of calls that may change an answer, as a text; ``""`` without any."""
        return answer_parameters(self.parameters)


@dataclass(frozen=True, slots=True)
class EvaluatorSettings:
    """The settings of scoring. ``enabled``: metric keys, or ``None`` for all; ``thresholds``: by key; ``modules``: the
    user's own metrics, by path or dotted name."""

    enabled: Collection[str] | None = None
    """Whether the enabled metrics were named one by one, so that each is wanted."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_signals: tuple[str, ...] = ("response", "grounding", "tool_loop", "correctness")
    coherence_signal: str = "sure"
    end_tokens: tuple[str, ...] = ()
    """Answers by which agents declare that they are done."""
    modules: tuple[str, ...] = ()
    shares_sessions: bool = True
    """Whether whoever reads a trace has the others of its session. If not, it is read by itself: what is said of it may
    not rest on which of the others happen to be there. Answers are compared as far as they are."""
    listed_attributes: tuple[str, ...] = ()
    """Keys of attributes by which lists find traces."""
    judge: JudgeSettings | None = None
    """``None``: judged metrics are switched off."""
    trace_timeout: float = TRACE_SECONDS
    """How many seconds one trace may take, beside what its bytes take."""


class Prepared(NamedTuple):
    """A metric's threshold, and ``origin``, which all its results share."""

    threshold: float
    origin: Origin


class Preparation:
    """Prepares each metric once. ``metrics``: all enabled ones; ``names``: the trace metrics that sessions may read."""

    def __init__(self, settings: EvaluatorSettings, embedder: Embedder, metrics: Sequence[Metric[Any, Any]]) -> None:
        self.settings, self.embedder = settings, embedder
        of_traces = [metric for metric in metrics if metric.level == "trace"]
        self._of_traces = [metric for metric in of_traces if not metric.explains]
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
        depends: dict[str, Any] = {**metric.settings, "threshold": threshold, "fragments": False}
        if settings.end_tokens and "response" in (metric.name, *metric.signals):
            depends["end_tokens"] = sorted(settings.end_tokens)
        judge = settings.judge
        if metric.kind == "llm" and judge is not None:
            depends |= {"prompt": PROMPT_VERSION, "secrets": judge.secrets}
            if judge.answer_parameters:
                depends["parameters"] = judge.answer_parameters
            if judge.pii or judge.custom:
                depends["hidden"] = ["pii"] * judge.pii + list(judge.custom)
        elif metric.level == "session" and metric.kind != "llm":
            read = [each for each in self._of_traces if not metric.signals or each.name in metric.signals]
            judged = [each.key for each in read if each.kind == "llm"]
            if judge is not None and judged:
                depends["judge"] = sorted({judge.model_of(key) for key in judged})
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
