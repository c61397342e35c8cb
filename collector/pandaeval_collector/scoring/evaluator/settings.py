"""The settings of scoring and judging, independent of the configuration file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pandaeval_collector.base.time_limit import TRACE_SECONDS
from pandaeval_collector.judge.call import answer_parameters
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.rulings import Guidance, Ruling, guidance
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.scoring.metric import JudgedMetric

VERDICT = "correctness"
"""The metric whose result is the judge's verdict on a run."""
_READ_END_TOKENS = frozenset({"response", "run_ended", "finding_absent"})


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The judge, the traces that it judges, and redaction.

    ``models``: by metric key, else ``model``. ``delay``: seconds from completion. ``custom``: redaction functions as
    ``module:function``. ``unclear``: bounds of the unclear certainty. ``parameters``: litellm arguments. ``rulings``:
    returns the current rulings. ``detail``: runs that get further questions.
    """

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    delay: float = 30.0
    secrets: bool = True
    pii: bool = False
    custom: tuple[str, ...] = ()
    correctness: Literal["session", "trace"] = "session"
    unclear: tuple[float, float] = (25, 75)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rulings: Callable[[], tuple[Ruling, ...]] = tuple
    detail: Literal["failing", "all", "none"] = "all"

    def model_of(self, key: str) -> str:
        return self.models.get(key, self.model)

    def guidance(self, metric: JudgedMetric, agent: str, keys: Collection[str]) -> Guidance:
        """Return the rulings for a question that answers the metrics ``keys``."""
        return guidance(self.rulings(), keys, metric.asks, agent)

    @property
    def answer_parameters(self) -> str:
        return answer_parameters(self.parameters)

    def identity(self, name: str) -> dict[str, Any]:
        identity: dict[str, Any] = {"prompt": PROMPT_VERSION, "secrets": self.secrets}
        if name == VERDICT:
            identity["unclear"] = [*map(float, self.unclear)]
        if self.answer_parameters:
            identity["parameters"] = self.answer_parameters
        if self.pii or self.custom:
            identity["hidden"] = ["pii"] * self.pii + list(self.custom)
        return identity

    def identity_of_signals(self, keys: Collection[str]) -> dict[str, Any]:
        if not keys:
            return {}
        identity: dict[str, Any] = {"judge": sorted({self.model_of(key) for key in keys})}
        if f"trace.{VERDICT}" in keys:
            identity["unclear"] = [*map(float, self.unclear)]
        if used := [each for each in self.rulings() if each.concerns(keys, each.agent)]:
            identity["rulings"] = sorted(f"{each.metric} {each.agent} {each.text}" for each in used)
        return identity


@dataclass(frozen=True, slots=True)
class EvaluatorSettings:
    """The settings of scoring.

    ``enabled``: metric keys, ``None`` for all. ``thresholds``: by key. ``modules``: custom metrics by path or dotted
    name.
    """

    enabled: Collection[str] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_signals: tuple[str, ...] = ("response", "grounding", "tool_loop", "correctness")
    loop_signal: str = "sure"
    coherence_signal: str = "sure"
    end_tokens: tuple[str, ...] = ()
    """Answers that declare the end of a run."""
    modules: tuple[str, ...] = ()
    shares_sessions: bool = True
    """Whether the process that reads a trace has all traces of its session. If not, metrics read each trace alone; only
    answers are compared, as far as earlier answers are present."""
    listed_attributes: tuple[str, ...] = ()
    """Keys of attributes that lists can use as filters."""
    judge: JudgeSettings | None = None
    """``None``: judged metrics are switched off."""
    trace_timeout: float = TRACE_SECONDS
    """Seconds for a trace, in addition to the seconds for its bytes."""

    def identity(self, *names: str) -> dict[str, Any]:
        """Return the settings that identify results. ``names``: of the metric and its signals."""
        identity: dict[str, Any] = {"fragments": False}
        if self.end_tokens and _READ_END_TOKENS.intersection(names):
            identity["end_tokens"] = sorted(self.end_tokens)
        return identity

    def identity_of_signals(self) -> dict[str, Any]:
        return {
            "weights": dict(self.weights),
            "extra_signals": sorted(self.extra_signals),
            "loop_signal": self.loop_signal,
            "coherence_signal": self.coherence_signal,
        }
