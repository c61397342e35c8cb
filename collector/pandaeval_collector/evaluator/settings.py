"""What is configured about scoring and judging."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pandaeval_collector.judge.selection import Selection


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Who judges, and what of it enters the results. ``models``: others than ``model``, by metric key;
    ``selection``: about what; ``delay``: seconds between the close of a trace and its judgement; ``secrets``: whether
    they are taken out before, as are personal data (``pii``) and what functions of the user's own (``custom``, each
    ``module:function``) find."""

    model: str
    models: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    delay: float = 30.0
    secrets: bool = True
    pii: bool = False
    custom: tuple[str, ...] = ()

    def model_of(self, key: str) -> str:
        return self.models.get(key, self.model)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is configured about scoring. ``enabled``: metric keys, or ``None`` for all; ``thresholds``: by key."""

    enabled: Collection[str] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    extra_signals: tuple[str, ...] = ("error", "tool_loop", "grounding")
    coherence_signal: str = "calibrated"
    score_fragments: bool = False
    judge: JudgeSettings | None = None
    """``None``: judged metrics are switched off."""
