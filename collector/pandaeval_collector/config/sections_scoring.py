"""Configuration of metrics, sessions and gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pandaeval_collector.base.section import (
    Amount,
    Duration,
    Section,
    Share,
    Text,
    group,
)
from pandaeval_collector.config.sections_in import Names

# Gates: when a run over files fails, and when trials are too much worse than a baseline.


class Baseline(Section):
    """Comparison of trials with a baseline (option --baseline of pandaeval evaluate and pandaeval cases run)."""

    max_drop: Share | None = None
    """Largest drop of the mean success rate that passes, 0 to 1. A significant drop never passes. If null, all other
    drops pass."""


class Gates(Section):
    """Rules that decide, with metrics.thresholds, whether pandaeval evaluate fails (exit code 1)."""

    baseline: Baseline = group(Baseline)

    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = "critical"
    """Lowest severity of an incident that fails the command. If null, no incident fails it."""
    max_unscored: Share = 0.2
    """Maximum share of unscored results, 0 to 1. Above this share, a metric misses its threshold. Results without
    captured content or outside judge.sample do not count. The same share limits the missing cases and ungraded trials
    in a comparison with a baseline."""


class SessionSection(Section):
    """Rules for the end of a session, and weights of metrics in its score."""

    idle: Duration = 900.0
    """Time since the last trace, or verdict on a trace. After this time, the session closes. With a judge, the
    session first waits up to 10 minutes for pending verdicts."""
    max_age: Duration = 86400.0
    """Time since the first trace. After this time, the session closes."""
    interim: Duration | None = 60.0
    """Time without a new trace or verdict. After this time, an open session gets preliminary results without the judge.
    These results have final: false, and exported metrics and spans exclude them. If null, there are no preliminary
    results."""
    loop_signal: Literal["sure", "raw"] = "sure"
    """Which results of loop_detection count for a session. With sure, only failing results lower its scores. With raw,
    every result counts with its score."""
    coherence_signal: Literal["sure", "raw"] = "sure"
    """Which results of coherence count for a session. With sure, only failing results lower its scores. With raw, every
    result counts with its score."""
    extra_signals: tuple[Literal["response", "grounding", "tool_loop", "correctness"], ...] = (
        "response",
        "grounding",
        "tool_loop",
        "correctness",
    )
    """Additional metrics that count for a session. correctness counts only with judge.correctness: trace. [] means no
    additional metrics."""
    weights: Mapping[Literal["confidence", "loop_detection", "tool_correctness", "coherence"], Amount] = {}
    """Weights of metrics in the session scores, 0 or more, such as confidence: 2.0. The default weight is 0.8 for
    tool_correctness, and 1.0 for the others."""


class MetricsSection(Section):
    """Active metrics and their thresholds."""

    enabled: Names = "all"
    """all, or a list of metric names. trace.coherence enables one metric, and coherence enables it at every level."""
    thresholds: Mapping[str, Amount] = {}
    """Lowest passing score by metric, such as trace.coherence: 0.5, in the scale of the metric. If several levels have
    the metric, write the level."""
    modules: tuple[Text, ...] = ()
    """Your own metrics, as names of Python modules, or as paths of Python or YAML files. Relative paths begin at the
    working directory."""


class ResponseSection(Section):
    """Ways in which a run can end."""

    end_tokens: tuple[Text, ...] = ("###STOP###", "TERMINATE")
    """Answers that declare the end of a run, such as TERMINATE. You need not list an answer that the agent's
    instructions name."""


class Embedding(Section):
    """Conversion of texts into vectors."""

    model: Text = "embedded"
    """Name of the embedder, embedded (only English), multilingual or litellm:NAME."""
