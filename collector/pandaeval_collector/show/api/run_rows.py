"""Runs and schedules of the store as the API shows them, and what it is asked for as the store keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.cron import next_time
from pandaeval_collector.config import Config
from pandaeval_collector.runs.compare import Change, MetricComparison
from pandaeval_collector.runs.configure import NotAllowedError, metric_keys
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.show.api.run_shapes import (
    ChangedScore,
    ComparedMetric,
    Comparison,
    Difference,
    FailedItem,
    RunBody,
    RunDetail,
    RunShape,
    ScheduleShape,
)
from pandaeval_collector.store.run_rows import FullError, RunRow, ScheduleRow
from pandaeval_collector.store.run_tables import RunReads
from pandaeval_collector.store.schedules import ScheduleReads

_FAILURES = 50


def spec_of(config: Config, body: RunBody) -> RunSpec:
    """Returns the run that a request asks for. Raises ``UserError`` for names that are no metrics."""
    return RunSpec(
        metrics=metric_keys(config, body.metrics),
        wanted=body.filters.wanted(),
        model=body.model,
        sample=body.sample,
        weights=body.signal_weights,
        emit=body.emit,
        name=body.name,
        budget_usd=body.budget_usd,
    )


def refused(error: UserError) -> ProblemError:
    """Returns the answer to a run that cannot be done (422), not on a request over HTTP (400), or not now (429)."""
    if isinstance(error, FullError):
        return ProblemError(429, str(error))
    return ProblemError(400 if isinstance(error, NotAllowedError) else 422, str(error))


def run_row(run: RunRow) -> RunShape:
    """Returns a run in the API's form."""
    return RunShape(**_fields(run))


def run_detail(runs: RunReads, run: RunRow) -> RunDetail:
    """Returns a run with the counts of its results and some of its failures."""
    results: dict[str, dict[str, int]] = {}
    for (metric, outcome), count in runs.counts(run.no).items():
        results.setdefault(metric, {})[outcome] = count
    failures = [FailedItem(trace_id=id_, why=why) for id_, why in runs.items(run.no, "failed", _FAILURES)]
    return RunDetail(**_fields(run), results=results, failures=failures)


def schedule_row(stored: ScheduleReads, schedule: ScheduleRow) -> ScheduleShape:
    """Returns a schedule in the API's form."""
    last = stored.newest_run(schedule.id)
    due = None if schedule.paused else next_time(schedule.cron, schedule.fired_at)
    return ScheduleShape(
        id=schedule.id,
        cron=schedule.cron,
        paused=schedule.paused,
        created_at=_ms(schedule.created_at),
        fired_at=_ms(schedule.fired_at),
        next_at=None if due is None else _ms(due),
        last_run=None if last is None else last.id,
        run=_asked(RunSpec.from_json(schedule.body)),
    )


def comparison(runs: RunReads, first: RunRow, second: RunRow | None, found: Sequence[MetricComparison]) -> Comparison:
    """Returns the comparison of two runs in the API's form; ``second`` is ``None`` for the live results."""
    return Comparison(
        a=run_row(first),
        b=None if second is None else run_row(second),
        metrics=[_metric(runs, first, each) for each in found],
    )


def _metric(runs: RunReads, run: RunRow, found: MetricComparison) -> ComparedMetric:
    difference = None if found.difference is None else Difference(**asdict(found.difference))
    return ComparedMetric(
        metric=found.metric,
        pairs=found.pairs,
        both_scored=found.both_scored,
        differing=found.differing,
        agreement=found.agreement,
        difference=difference,
        versions=found.versions,
        same_series=found.versions[0] == found.versions[1],
        changes=[_change(runs, run, found.metric, each) for each in found.changes],
    )


def _change(runs: RunReads, run: RunRow, metric: str, change: Change) -> ChangedScore:
    said: dict[str, Any] = orjson.loads(runs.body(run.no, metric, change.about) or b"{}")
    trace_id = said.get("trace_id") if change.about > 0 else None
    return ChangedScore(trace_id=trace_id, session_id=said.get("session_id"), before=change.before, after=change.after)


def _fields(run: RunRow) -> dict[str, Any]:
    return {
        "id": run.id,
        "state": run.state,
        "created_at": _ms(run.created_at),
        "started_at": None if run.started_at is None else _ms(run.started_at),
        "ended_at": None if run.ended_at is None else _ms(run.ended_at),
        "planned": run.planned >= run.upto,
        "traces": run.total,
        "done": run.done,
        "failed": run.failed,
        "calls": run.calls,
        "tokens": run.tokens,
        "cost_usd": run.cost_usd,
        "error": run.error,
        "schedule": run.schedule or None,
        **_asked(RunSpec.from_json(run.body)),
    }


def _asked(spec: RunSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "metrics": list(spec.metrics),
        "filters": {key: value for key, value in asdict(spec.wanted).items() if value not in (None, ())},
        "model": spec.model,
        "sample": spec.sample,
        "signal_weights": dict(spec.weights),
        "emit": spec.emit,
        "budget_usd": spec.budget_usd,
    }


def _ms(time: float) -> int:
    return int(time * 1000)
