"""Models of evaluation runs and schedules."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from pandaeval_collector.base.filters import MOST_TEXT
from pandaeval_collector.base.runtime.cron import next_time
from pandaeval_collector.config import Config
from pandaeval_collector.runs.compare import MetricComparison
from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_collector.runs.spec import RunSpec, metric_keys
from pandaeval_collector.show.api.filters import RunFilters
from pandaeval_collector.show.view.rows import ItemPage, Milliseconds, Result
from pandaeval_collector.store.runs import RunRow, RunTable
from pandaeval_collector.store.schedules import ScheduleRow, Schedules

_FAILURES = 50
"""Maximum failed traces shown with a run."""
_SAME = ("model", "sample", "emit", "name", "budget_usd")
"""Fields with the same name in a request and in the stored run."""
Text = Annotated[str, Field(max_length=MOST_TEXT)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[Milliseconds, BeforeValidator(lambda seconds: int(seconds * 1000))]
"""Unix seconds of the store, shown as milliseconds."""
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class RunBody(BaseModel):
    """An evaluation run: traces, metrics and judge."""

    model_config = ConfigDict(extra="forbid")

    metrics: list[Text] = Field(
        min_length=1, max_length=100, description="Metric names, such as trace.task_completion."
    )
    filters: RunFilters = Field(default_factory=RunFilters, description="Selects the traces to score.")
    model: Text | None = Field(
        default=None, description="Judge model that the configuration names. If null, the configured models."
    )
    sample: Share = Field(default=1.0, description="Share of the sessions and single traces to score, 0 to 1.")
    signal_weights: dict[str, Weight] = Field(
        default_factory=dict,
        description="Weights of confidence, loop_detection, tool_correctness and coherence in session scores. They "
        "override session.weights.",
    )
    emit: bool = Field(default=False, description="Also send the results to the configured exporters, with the run ID.")
    name: Text = Field(default="", description="Name of the run in lists.")
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Cost in US dollars at which the run stops, checked before each batch of traces. Judged metrics "
        "need this limit or judge.daily_usd. Models without a list price count as free.",
    )
    dry_run: bool = Field(default=False, description="Only estimate calls, tokens and cost.")

    def spec(self, config: Config) -> RunSpec:
        """Return the run as stored. Raises ``UserError`` for unknown metrics."""
        same = {name: getattr(self, name) for name in _SAME}
        metrics, wanted = metric_keys(config, self.metrics), self.filters.wanted()
        return RunSpec(metrics=metrics, wanted=wanted, weights=self.signal_weights, **same)


class ScheduleBody(BaseModel):
    """A repeated run over new or changed traces."""

    model_config = ConfigDict(extra="forbid")

    cron: Annotated[str, Field(max_length=100)] = Field(description="Minute, hour, day, month and weekday, in UTC.")
    run: RunBody


class RunShape(BaseModel):
    """A run.

    ``traces``: number (final if ``planned``), of which ``done`` and ``failed``. ``calls``, ``tokens``, ``cost_usd``: of
    judges, so far.
    """

    id: str
    name: str
    state: Literal["queued", "running", "done", "cancelled"]
    created_at: Seconds
    started_at: Seconds | None
    ended_at: Seconds | None
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

    @classmethod
    def of(cls, run: RunRow, **more: Any) -> Self:
        about = {"planned": run.planned >= run.upto, "traces": run.total, "schedule": run.schedule or None}
        return cls.model_validate(asdict(run) | about | _asked(run.body) | more)


def _asked(body: bytes) -> dict[str, Any]:
    spec = RunSpec.from_json(body)
    return {
        **{name: getattr(spec, name) for name in _SAME},
        "metrics": list(spec.metrics),
        "filters": {key: value for key, value in asdict(spec.wanted).items() if value not in (None, ())},
        "signal_weights": dict(spec.weights),
    }


class FailedItem(BaseModel):
    """A failed trace with the reason."""

    trace_id: str
    why: str


class RunDetail(RunShape):
    """A run with result counts by metric and outcome, and some failed traces."""

    results: dict[str, dict[str, int]]
    failures: list[FailedItem]

    @classmethod
    def read(cls, runs: RunTable, run: RunRow) -> Self:
        results: dict[str, dict[str, int]] = {}
        for (metric, outcome), count in runs.counts(run.no).items():
            results.setdefault(metric, {})[outcome] = count
        failures = [FailedItem(trace_id=id_, why=why) for id_, why in runs.items(run.no, "failed", _FAILURES)]
        return cls.of(run, results=results, failures=failures)


class RunList(ItemPage[RunShape]):
    """A page of runs, newest first."""


class RunResults(ItemPage[Result]):
    """A page of results in order of arrival."""


@dataclass(frozen=True)
class DryRun(CostEstimate):
    """The estimated cost of a run.

    ``counted``: traces with counted calls, extrapolated to all. ``remembered``: cached answers. ``cost_usd``: null if
    unknown.
    """

    dry_run: Literal[True] = True


class ScheduleShape(BaseModel):
    """A schedule with its next time."""

    id: str
    cron: str
    created_at: Seconds
    fired_at: Seconds
    next_at: Seconds | None
    last_run: str | None
    run: dict[str, Any]

    @classmethod
    def read(cls, stored: Schedules, schedule: ScheduleRow) -> Self:
        last, due = stored.newest_run(schedule.id), next_time(schedule.cron, schedule.fired_at)
        about = {"next_at": due, "last_run": last and last.id, "run": _asked(schedule.body)}
        return cls.model_validate(asdict(schedule) | about)


class ScheduleList(BaseModel):
    """All schedules."""

    items: list[ScheduleShape]


class Comparison(BaseModel):
    """Two runs, or a run and the live results (``b`` is null). ``cost_usd``: of each run."""

    a: RunShape
    b: RunShape | None
    metrics: list[MetricComparison]
