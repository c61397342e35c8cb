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

# Gates: when a run over files fails, and when repeated trials are worse than they may be.


class Baseline(Section):
    """Comparison of trials with a baseline (pandaeval evaluate --baseline)."""

    max_drop: Share | None = None
    """Largest drop of the mean success rate that passes, 0 to 1. null: only significant drops fail."""


class Gates(Section):
    """Rules that fail pandaeval evaluate (exit code 1)."""

    baseline: Baseline = group(Baseline)

    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = "critical"
    """Lowest severity of an incident that fails the command. null: off."""
    max_unscored: Share = 0.2
    """Largest share of results without a score that passes a threshold, 0 to 1."""


class SessionSection(Section):
    """Rules for the end of a session, and weights of metrics in its score."""

    idle: Duration = 900.0
    """Time since the last trace after which a session closes."""
    max_age: Duration = 86400.0
    """Time since the first trace after which a session closes."""
    interim: Duration | None = 60.0
    """Time without a new trace or verdict after which an open session gets a preliminary score. Preliminary results
    have final: false and do not change metrics. null: no preliminary scores."""
    loop_signal: Literal["sure", "raw"] = "sure"
    """Results of loop_detection that count for a session. sure: only failing results. raw: every score."""
    coherence_signal: Literal["sure", "raw"] = "sure"
    """Results of coherence that count for a session. sure: only answers that fail as off topic. raw: every score."""
    extra_signals: tuple[Literal["response", "grounding", "tool_loop", "correctness"], ...] = (
        "response",
        "grounding",
        "tool_loop",
        "correctness",
    )
    """Additional metrics that count for a session: response, grounding, tool_loop, and correctness (with
    judge.correctness: trace). []: none."""
    weights: Mapping[Literal["confidence", "loop_detection", "tool_correctness", "coherence"], Amount] = {}
    """Weights of metrics in the session score, 0 or more, such as tool_correctness: 0.8. The default weight is 1.0."""


class MetricsSection(Section):
    """Active metrics and their thresholds."""

    enabled: Names = "all"
    """all, or a list of names such as trace.coherence, or coherence for every level."""
    thresholds: Mapping[str, Amount] = {}
    """Lowest passing value by name, such as trace.coherence: 0.5, in the scale of the metric."""
    modules: tuple[Text, ...] = ()
    """Your own metrics: Python files, YAML files (paths relative to the working directory), or names of modules."""


class ResponseSection(Section):
    """Ends of runs."""

    end_tokens: tuple[Text, ...] = ("###STOP###", "TERMINATE")
    """Answers that declare the end of a run, such as TERMINATE. If the agent's instructions name such an answer, you
    need not list it."""


class Embedding(Section):
    """Conversion of texts into vectors."""

    model: Text = "embedded"
    """embedded (English), multilingual, or litellm:NAME."""
