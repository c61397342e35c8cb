"""What the API takes and answers about evaluation runs and schedules, as pydantic models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.filters import MOST_TEXT
from pandaeval_collector.show.api.filters import FilterFields, RunFilters

Text = Annotated[str, Field(max_length=MOST_TEXT)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Milliseconds = Annotated[int, Field(description="Unix time in milliseconds.")]


class RunBody(BaseModel):
    """An evaluation run: which traces, which metrics, who judges."""

    model_config = ConfigDict(extra="forbid")

    metrics: list[Text] = Field(min_length=1, max_length=100, description="Names, such as trace.task_completion.")
    if TYPE_CHECKING:  # the class is made at run time, which no checker can follow
        filters: FilterFields = Field(default_factory=FilterFields)
    else:
        filters: RunFilters = Field(default_factory=RunFilters)
    model: Text | None = Field(
        default=None, description="Who judges, one of the models that the configuration names; null: as configured."
    )
    sample: Share = Field(default=1.0, description="Share of the sessions, 0 to 1, the same ones each time.")
    signal_weights: dict[str, Weight] = Field(
        default_factory=dict, description="Weights of signals in session metrics, beside the configured ones."
    )
    emit: bool = Field(
        default=False, description="Results leave as log events, spans and metrics, like live ones, with the run's id."
    )
    name: Text = Field(default="", description="For people.")
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="US dollars of judges after which no further batch (8 traces, or a session) is begun; calls of a "
        "model without a list price count as nothing. Metrics that ask a judge need it, or judge.daily_usd.",
    )
    dry_run: bool = Field(default=False, description="Nothing is run: the answer says what it would take.")


class ScheduleBody(BaseModel):
    """A run again and again, of what is new or changed since the last one."""

    model_config = ConfigDict(extra="forbid")

    cron: Annotated[str, Field(max_length=100)] = Field(description="Minute hour day month weekday, in UTC.")
    run: RunBody


class RunShape(BaseModel):
    """A run. ``traces``: how many it is about (final once ``planned``), of which ``done`` and ``failed``; ``calls``,
    ``tokens``, ``cost_usd``: of judges, by now."""

    id: str
    name: str
    state: Literal["queued", "running", "done", "cancelled", "standing"]
    created_at: Milliseconds
    started_at: Milliseconds | None
    ended_at: Milliseconds | None
    planned: bool
    traces: int
    done: int
    failed: int
    calls: int
    tokens: int
    cost_usd: float
    error: str
    schedule: str | None
    metrics: list[str]
    filters: dict[str, Any]
    model: str | None
    sample: float
    signal_weights: dict[str, float]
    emit: bool
    budget_usd: float | None


class FailedItem(BaseModel):
    """A trace that failed, and why."""

    trace_id: str
    why: str


class RunDetail(RunShape):
    """A run, how many results it has by metric and outcome, and some of the traces that failed."""

    results: dict[str, dict[str, int]]
    failures: list[FailedItem]


class RunList(BaseModel):
    """A page of runs, newest first."""

    items: list[RunShape]
    next: str | None


class RunResults(BaseModel):
    """A page of results, in the order in which they came."""

    items: list[dict[str, Any]]
    next: str | None


class DryRun(BaseModel):
    """What a run would take. ``counted``: traces whose calls were counted, the others are taken to be like them;
    ``remembered``: questions that were answered before and cost nothing; ``cost_usd``: null without a known price."""

    dry_run: Literal[True] = True
    traces: int
    sessions: int
    counted: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    remembered: int
    cost_usd: float | None
    models: dict[str, Any]


class ScheduleShape(BaseModel):
    """A schedule, and when it fires next."""

    id: str
    cron: str
    paused: bool
    created_at: Milliseconds
    fired_at: Milliseconds
    next_at: Milliseconds | None
    last_run: str | None
    run: dict[str, Any]


class ScheduleList(BaseModel):
    """All schedules."""

    items: list[ScheduleShape]


class Difference(BaseModel):
    """The mean of the scores' differences, second minus first, with a 95 % interval over sessions."""

    n: int
    clusters: int
    mean: float
    low: float | None
    high: float | None


class ChangedScore(BaseModel):
    """A unit whose score changed."""

    trace_id: str | None
    session_id: str | None
    before: float
    after: float


class ComparedMetric(BaseModel):
    """One metric in both, see `pandaeval runs compare`."""

    metric: str
    pairs: int
    both_scored: int
    differing: int
    agreement: float | None
    difference: Difference | None
    versions: tuple[list[str], list[str]]
    same_series: bool
    changes: list[ChangedScore]


class Comparison(BaseModel):
    """Two runs, or a run and the live results (``b`` is null). ``cost_usd``: of each run."""

    a: RunShape
    b: RunShape | None
    metrics: list[ComparedMetric]
