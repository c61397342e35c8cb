"""Gates: when a run over files fails; and when repeated trials, or a stream of results, are worse than they may be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pandaeval_collector.base.section import Count, PositiveDuration, Section, Share, Text, group

Level = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(gt=0, lt=1)]
Ks = Annotated[Count, Field(ge=1, le=1000)]


class TrialsSection(Section):
    """Repeated cases in a running collector, as gauges (pandaeval.pass_pow_k)."""

    metrics: tuple[Text, ...] = Field(
        default=("trial.trial_correct", "trace.task_completion"),
        description="By which metrics a trial succeeds, in full; each that has results of cases gets gauges. Empty: "
        "none.",
    )
    k: tuple[Ks, ...] = Field(default=(1, 3, 5), description="How many trials have to succeed all together.")
    window: Count = Field(
        default=100, le=10_000, description="Newest trials of each case that count; of at most 200 cases a metric."
    )
    interval: PositiveDuration = Field(
        default=10.0, description="Time between two calculations; after a crash so much may be forgotten."
    )


class Baseline(Section):
    """Trials against those of a baseline: pandaeval evaluate --baseline, pandaeval gate compare."""

    metric: Text | None = Field(
        default=None,
        description="By which metric a trial succeeds, such as trace.task_completion; null: trial_correct, or the only "
        "metric there is.",
    )
    level: Level = Field(default=0.05, description="Share of false alarms, 0 to 1, by which a drop is credible.")
    max_drop: Share | None = Field(
        default=None,
        description="Largest drop of the mean success rate, 0 to 1, that passes, whether credible or not; null: any "
        "that is not credible.",
    )


class Stream(Section):
    """A gate that may be looked at after every result."""

    metrics: tuple[Text, ...] = Field(
        default=(),
        description="Metrics whose passes are watched in a running collector, by agent, such as trace.task_completion; "
        "empty: none.",
    )
    rate: Rate = Field(default=0.9, description="Least share of results, 0 to 1, that has to pass.")
    level: Level = Field(
        default=0.05,
        description="Chance of a false alarm, 0 to 1, however often the gate is looked at and however long it runs.",
    )


class Gates(Section):
    """When pandaeval evaluate exits with 1."""

    baseline: Baseline = group(Baseline)
    stream: Stream = group(Stream)

    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = Field(
        default="critical", description="Least severity of a failure that fails the run; null: none does."
    )
    max_unscored: Share = Field(
        default=0.2,
        description="Largest share of results, 0 to 1, that may be missing before a threshold fails; what was not "
        "captured or not sampled is not missing.",
    )
