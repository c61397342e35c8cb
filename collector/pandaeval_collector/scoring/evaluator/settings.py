"""The settings of scoring and judging, independent of the configuration file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pandaeval_collector.judge.call import CallParameters
from pandaeval_collector.judge.rubric import Guidance, Guideline, guidance
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.scoring.metric import Metric


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges which traces, and what is redacted before. ``models``: overrides of ``model`` by metric key;
    ``selection``: the traces to judge; ``delay``: seconds between the close of a trace and its judgement; ``secrets``,
    ``pii``: whether secrets and personal data are redacted; ``custom``: the user's functions that redact more, each
    ``module:function``; ``votes``: verdicts on each question, of which the median counts; ``turn_calls``: whether the
    questions about one turn are put in one call; ``language``: of reasons; ``parameters``: of the calls of single
    models; ``defaults``: of all others; ``guidelines``: added to questions."""

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    delay: float = 30.0
    secrets: bool = True
    pii: bool = False
    custom: tuple[str, ...] = ()
    votes: int = 1
    turn_calls: Literal["shared", "separate"] = "shared"
    language: str = "en"
    defaults: CallParameters = field(default_factory=CallParameters)
    parameters: Mapping[str, CallParameters] = field(default_factory=dict)
    guidelines: tuple[Guideline, ...] = ()

    @property
    def shares_turns(self) -> bool:
        """Whether the questions about one turn share a call; several votes are given on each by itself."""
        return self.turn_calls == "shared" and self.votes == 1

    def model_of(self, key: str) -> str:
        return self.models.get(key, self.model)

    def guidance(self, metric: Metric[Any, Any], agent: str) -> Guidance:
        """Returns the guidelines for a metric's question about a run of an agent."""
        if not self.guidelines:
            return Guidance()
        verdict = metric.part.name if metric.part is not None else metric.rubrics[-1].name if metric.rubrics else ""
        return guidance(self.guidelines, metric.key, verdict, agent)

    def asked_with(self, model: str) -> str:
        """Returns a model's call parameters that may change its answers, as a text; ``""`` if none is set."""
        return self.parameters.get(model, self.defaults).key()


@dataclass(frozen=True, slots=True)
class EvaluatorSettings:
    """The settings of scoring. ``enabled``: metric keys, or ``None`` for all; ``thresholds``: by key; ``modules``: the
    user's own metrics, by path or dotted name."""

    enabled: Collection[str] | None = None
    """Whether the enabled metrics were named one by one, so that each is wanted."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_signals: tuple[str, ...] = ("response", "grounding", "tool_loop")
    coherence_signal: str = "sure"
    end_tokens: tuple[str, ...] = ()
    """Answers by which agents declare that they are done."""
    score_fragments: bool = False
    score_rootless: bool = True
    modules: tuple[str, ...] = ()
    shares_sessions: bool = True
    """Whether whoever reads a trace has the others of its session. If not, it is read by itself: what is said of it may
    not rest on which of the others happen to be there. Answers are compared as far as they are."""
    listed_attributes: tuple[str, ...] = ()
    """Keys of attributes by which lists find traces."""
    judge: JudgeSettings | None = None
    """``None``: judged metrics are switched off."""
    learning: bool = False
    """Whether models may be learned from labels of these runs: then the course of each run is counted."""
    learned: str | None = None
    """Folder with what was learned from labels; ``None``: nothing was."""
