"""Compares the runs of two filters, for page, API, MCP and commands: rates, incidents, latency and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from pandaeval_collector.analysis.stats.quantiles import normal_quantile, wilson
from pandaeval_collector.analysis.stats.two_groups import share_difference
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.show.report.incidents import Incident, incidents, medians
from pandaeval_collector.show.view.rates import VERDICTS, OutcomeCounts
from pandaeval_collector.store.costs import read_measures
from pandaeval_collector.store.failing import FailedResult, read_failures
from pandaeval_collector.store.failures import gravity
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.rates import count_runs, read_rates

RUNS = "runs without findings"
"""In place of a metric: how many runs have no failure."""
CLEAR = 0.05
"""The p-value below which an incident grows or shrinks."""
Trend = Literal["new", "growing", "same", "shrinking", "gone"]
_TRENDS: tuple[Trend, ...] = ("new", "growing", "same", "shrinking", "gone")
_MEASURES = ("us", "us95", "tokens", "usd")


class GroupShare(BaseModel):
    """Results of a group that passed and failed. ``share``: passed of both, with its 95 % interval ``low`` to ``high``
    (Wilson); ``undecided``: undecided verdicts."""

    passed: int
    failed: int
    undecided: int
    share: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, counts: OutcomeCounts) -> Self:
        """Return counts in this form."""
        low, high = None, None
        if counts.share is not None:
            low, high = wilson(counts.share, counts.judged, normal_quantile())
        share = {"share": counts.share, "low": low, "high": high}
        return cls(passed=counts.passed, failed=counts.failed, undecided=counts.open, **share)


class ComparedRate(BaseModel):
    """A rate of both groups. ``difference``: share of ``b`` minus share of ``a``, with Newcombe's 95 % interval; ``p``:
    two-sided p-value of Fisher's exact test; null if a group has no decided result."""

    metric: str = Field(description=f"Such as session.correctness; `{RUNS}` counts runs, not results.")
    a: GroupShare
    b: GroupShare
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @classmethod
    def of(cls, metric: str, a: OutcomeCounts, b: OutcomeCounts) -> Self:
        """Return the comparison of the counts of two groups."""
        row = cls(metric=metric, a=GroupShare.of(a), b=GroupShare.of(b))
        apart = share_difference(a.passed, a.judged, b.passed, b.judged)
        if apart is not None:
            row.difference, row.low, row.high, row.p = apart.value, apart.low, apart.high, apart.p
        return row


class ComparedIncident(BaseModel):
    """An incident in both groups. ``a``, ``b``: its runs, or its sessions if its metric is of sessions; ``trend``: from
    ``a`` to ``b``; ``p``: as of rates; ``ids``, ``grouped``: as of incidents."""

    id: str
    ids: list[str]
    grouped: bool
    metric: str
    label: str
    severity: str
    reason: str
    trend: Trend
    a: int
    b: int
    p: float | None


class ComparedMeasure(BaseModel):
    """Latency in microseconds (median `us`, 95th percentile `us95`), or the median of `tokens` or `usd` by run."""

    name: Literal["us", "us95", "tokens", "usd"]
    a: float | None
    b: float | None


class ComparedGroup(BaseModel):
    """The runs of a filter, the runs with findings among them, and the sessions with results."""

    runs: int
    failed: int
    sessions: int


class FilterComparison(BaseModel):
    """Two groups of runs: rates with intervals, verdicts first, then the clearest differences; incidents, new incidents
    first; latency, tokens and cost of the newest 5,000 runs."""

    a: ComparedGroup
    b: ComparedGroup
    rates: list[ComparedRate]
    incidents: list[ComparedIncident]
    measures: list[ComparedMeasure]


def compare_filters(finder: Finder, a: Wanted, b: Wanted, metric: str | None) -> FilterComparison:
    """Compare the runs that two filters find. ``metric``: the only metric to return a rate of."""
    one, other = (_group(finder, wanted) for wanted in (a, b))
    rates = _rates(finder, (a, b), (one, other))
    if metric is not None:
        rates = [each for each in rates if each.metric == metric]
    measured = [_measured(finder, wanted) for wanted in (a, b)]
    measures = [
        ComparedMeasure(name=name, a=first, b=second)
        for name, first, second in zip(_MEASURES, *measured, strict=True)
        if first is not None or second is not None
    ]
    return FilterComparison(
        a=one, b=other, rates=rates, incidents=_incidents(finder, (a, b), (one, other)), measures=measures
    )


def _group(finder: Finder, wanted: Wanted) -> ComparedGroup:
    runs, failed, sessions = count_runs(finder, wanted)
    return ComparedGroup(runs=runs, failed=failed, sessions=sessions)


def _measured(finder: Finder, wanted: Wanted) -> Sequence[float | None]:
    return medians([run for runs in read_measures(finder, wanted).values() for run in runs])


def _rates(
    finder: Finder, wanted: tuple[Wanted, Wanted], groups: tuple[ComparedGroup, ComparedGroup]
) -> list[ComparedRate]:
    one, other = (_counted(finder, each) for each in wanted)
    for group, counts in zip(groups, (one, other), strict=True):
        counts[RUNS] = OutcomeCounts(passed=group.runs - group.failed, failed=group.failed)
    none = OutcomeCounts()
    rates = [ComparedRate.of(key, one.get(key, none), other.get(key, none)) for key in {**one, **other}]
    decided = [each for each in rates if each.a.share is not None or each.b.share is not None]
    return sorted(decided, key=_clearest_first)


def _clearest_first(rate: ComparedRate) -> tuple[int, float, str]:
    first = [*VERDICTS, RUNS]
    return (
        first.index(rate.metric) if rate.metric in first else len(first),
        1.0 if rate.p is None else rate.p,
        rate.metric,
    )


def _counted(finder: Finder, wanted: Wanted) -> dict[str, OutcomeCounts]:
    """Count the results of all agents together, by metric."""
    counts: dict[str, OutcomeCounts] = {}
    for metric, agent, verdict, times in read_rates(finder, wanted):
        if agent is None or not metric.startswith("session."):  # sessions count once, and again for each agent
            counts.setdefault(metric, OutcomeCounts()).add_verdict(verdict, times)
    return counts


def _incidents(
    finder: Finder, wanted: tuple[Wanted, Wanted], groups: tuple[ComparedGroup, ComparedGroup]
) -> list[ComparedIncident]:
    failed: dict[tuple[int, int], FailedResult] = {}
    inside: list[set[int]] = []
    for each in wanted:
        found, known, given = read_failures(finder, each)
        failed |= {(failure.no, failure.seq): failure for failure in found}
        inside.append({failure.no for failure in found})
    oldest_first = sorted(failed.values(), key=lambda failure: (failure.at, failure.no, failure.seq))
    seen = [each for each in incidents(oldest_first, known) if each.triage(given).state != "muted"]
    bodies = finder.bodies([each.newest.seq for each in seen])
    rows = [_incident(each, inside, groups, bodies.get(each.newest.seq, {})) for each in seen]
    return sorted(rows, key=_most_changed_first)


def _most_changed_first(row: ComparedIncident) -> tuple[Any, ...]:
    return _TRENDS.index(row.trend), *gravity([row.label], row.severity), -row.b, -row.a, row.id


def _incident(
    incident: Incident,
    inside: Sequence[set[int]],
    groups: tuple[ComparedGroup, ComparedGroup],
    body: Mapping[str, Any],
) -> ComparedIncident:
    a, b = (len(incident.at.keys() & nos) for nos in inside)
    is_of_session = incident.newest.no < 0
    all_ = (group.sessions if is_of_session else group.runs for group in groups)
    sizes = [max(found) for found in zip((a, b), all_, strict=True)]  # a run may have arrived between two reads
    apart = share_difference(a, sizes[0], b, sizes[1])
    return ComparedIncident(
        id=incident.id,
        ids=incident.ids,
        grouped=bool(incident.groups),
        metric=incident.metric,
        label=excerpt(incident.label, 60) or "",
        severity=incident.severity,
        reason=excerpt(body.get("reason") or incident.text, 300) or "",
        trend=_trend(a, b, apart.value if apart and apart.p < CLEAR else 0.0),
        a=a,
        b=b,
        p=None if apart is None else apart.p,
    )


def _trend(a: int, b: int, change: float) -> Trend:
    """Return how an incident with ``a`` and ``b`` runs develops. ``change``: of its share, if the change is clear."""
    if not a or not b:
        return "gone" if a else "new"
    if change:
        return "growing" if change > 0 else "shrinking"
    return "same"
