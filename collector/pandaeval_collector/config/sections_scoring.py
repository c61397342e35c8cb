"""What is scored, how texts and sessions are, and the gates on what came of it."""

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
    """Trials against those of a baseline: pandaeval evaluate --baseline."""

    max_drop: Share | None = None
    """Largest drop of the mean success rate, 0 to 1, that passes, whether credible or not; null: any that is not
    credible."""


class Gates(Section):
    """When pandaeval evaluate exits with 1."""

    baseline: Baseline = group(Baseline)

    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = "critical"
    """Least severity of a failure that fails the run; null: none does."""
    max_unscored: Share = 0.2
    """Largest share of results, 0 to 1, that may be missing before a threshold fails; what was not captured or not
    sampled is not missing."""


class SessionSection(Section):
    """When a session is over, and how its score is weighed."""

    idle: Duration = 900.0
    """Time since its last trace after which a session closes."""
    max_age: Duration = 86400.0
    """Time since its first trace after which a session closes."""
    interim: Duration | None = 60.0
    """Time without a new trace or verdict after which an open session is scored as far as it has come; such results say
    final: false, are log events, and enter no metric. null: only when it closes."""
    loop_signal: Literal["sure", "raw"] = "sure"
    """Which loop_detection counts for a session. sure: only failing results; raw: every score."""
    coherence_signal: Literal["sure", "raw"] = "sure"
    """Which coherence counts for a session. sure: only answers that fail as off topic; raw: every cosine."""
    extra_signals: tuple[Literal["response", "grounding", "tool_loop", "correctness"], ...] = (
        "response",
        "grounding",
        "tool_loop",
        "correctness",
    )
    """Signals that count besides the four weighted ones: response (the run did not end well), grounding (it stated
    values without a source), tool_loop, and correctness (with judge.correctness: trace). [] leaves them out."""
    weights: Mapping[Literal["confidence", "loop_detection", "tool_correctness", "coherence"], Amount] = {}
    """Weights of signals, 0 or more; what is not named keeps 1.0 (tool_correctness: 0.8)."""


class MetricsSection(Section):
    """Which metrics run, and when they pass."""

    enabled: Names = "all"
    """all, or a list of names: trace.coherence, or coherence for every level that has it. What a session metric reads
    of its traces is computed with it, as far as that asks no judge, and not sent."""
    thresholds: Mapping[str, Amount] = {}
    """Least passing value by name, such as trace.coherence: 0.5; in the metric's own scale."""
    modules: tuple[Text, ...] = ()
    """Metrics of your own: Python files or YAML files (.yaml, .yml; paths count from the working directory), or dotted
    names of modules."""


class ResponseSection(Section):
    """How agents end their runs."""

    end_tokens: tuple[Text, ...] = ("###STOP###", "TERMINATE")
    """Answers by which your agents declare that they are done: alone, they end a run well, whatever marks stand around
    their words. A token that the instructions name is known by itself."""


class Embedding(Section):
    """How texts become vectors."""

    model: Text = "embedded"
    """embedded (English) or multilingual, which ship with the package; or litellm:NAME."""
