"""Incidents of a window, by cause: most severe, newest and rising first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from pydantic import BaseModel

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.show.view.rows import Milliseconds, TraceRow
from pandaeval_collector.store import FailureGroupRow
from pandaeval_collector.store.failing import FailedResult
from pandaeval_collector.store.failures import gravity, group_id, plain, severity_of
from pandaeval_collector.store.rates import AgentBucket
from pandaeval_collector.store.triage import SETTLED, STATES, State, Triage

BARS, SPARKS = 72, 24
"""Bars of the chart over time, and of the small charts next to names."""
_WHOLE = "*"  # in place of a step: a verdict on a session is about all of the run that it blames
Measures = tuple[int, int, float | None]
"""Latency in microseconds, tokens and cost of a run; the cost is ``None`` if it is unknown."""
_MANY, _SHARE = 10, 0.1
_RAISED = {"low": "medium", "medium": "high"}
"""Raised severity of an incident, by its minimum runs and its minimum share of the agents' runs or sessions."""
_RISES, _LEAST = 2.0, 3
"""A rising incident has at least this multiple of an earlier quarter's runs in its last quarter, and at least this many
runs."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """An interval ``since``–``until`` in Unix milliseconds."""

    since: int
    until: int

    @property
    def step(self) -> int:
        return max(1000, math.ceil((self.until - self.since) / BARS / 1000) * 1000)

    def spark(self, times: Iterable[int], parts: int = SPARKS, width: float | None = None) -> list[int]:
        """Count ``times`` by part of the span; outliers count at the ends."""
        width = width or self._width / parts
        counts = Counter(min(parts - 1, max(0, int((at - self.since) // width))) for at in times)
        return [counts[part] for part in range(parts)]

    @property
    def _width(self) -> int:
        return max(1, self.until - self.since)

    @property
    def last_quarter(self) -> int:
        return self.until - self._width // 4


@dataclass(slots=True)
class Incident:
    """All failures of a cause in a window.

    ``id``: first failure's group, else from the cause. ``at``: start of each run. ``first_ever``: perhaps before the
    window. ``also``: other metrics and labels at the same steps. ``among``: runs or sessions of its agents in the
    window. ``dismissed``: runs with dismissed findings.
    """

    id: str
    metric: str
    label: str
    severity: str
    newest: FailedResult
    first_ever: int
    text: str = ""
    at: dict[int, int] = field(default_factory=dict)
    seqs: dict[int, int] = field(default_factory=dict)
    steps: dict[tuple[str, str], None] = field(default_factory=dict)
    agents: Counter[str] = field(default_factory=Counter)
    groups: dict[str, None] = field(default_factory=dict)
    also: dict[tuple[str, str], None] = field(default_factory=dict)
    among: int = 0
    dismissed: int = 0

    def weigh(self, runs: Mapping[str, int], dismissed: Mapping[str, Collection[int]]) -> None:
        """Count dismissed runs, and raise the severity below ``high`` by a step if many runs failed so.

        ``runs``: runs or sessions in the window, by agent. ``dismissed``: by group.
        """
        self.among = max(len(self.at), sum(runs.get(agent, 0) for agent in self.agents))
        self.dismissed = len({no for id_ in self.ids for no in dismissed.get(id_, ())})
        if len(self.at) >= _MANY and len(self.at) >= _SHARE * self.among and self.severity in _RAISED:
            self.severity = _RAISED[self.severity]

    @property
    def ids(self) -> list[str]:
        return [*self.groups] or [self.id]

    def add(self, failed: FailedResult, first_ever: int) -> None:
        """Add a newer failure. ``first_ever``: when its group was first seen."""
        self.first_ever, self.newest = min(self.first_ever, first_ever), failed
        self.at[failed.no], self.seqs[failed.no] = failed.at, failed.seq
        self.steps[failed.trace_id or str(failed.no), failed.step if failed.no > 0 else _WHOLE] = None
        self.agents[failed.agent] += 1
        if failed.group:
            self.groups[failed.group] = None

    def covers(self, other: Incident) -> bool:
        for run, step in other.steps:
            if (run, _WHOLE) not in self.steps and not (step and (run, step) in self.steps):
                return False
        return True

    def take(self, other: Incident) -> None:
        """Absorb a covered incident. The more severe incident names it; a session verdict keeps its name."""
        if gravity([other.label], other.severity) < gravity([self.label], self.severity):
            self.severity, other.severity = other.severity, self.severity
            if self.newest.no > 0:
                self.metric, other.metric = other.metric, self.metric
                self.label, other.label = other.label, self.label
                self.text, self.newest = other.text, other.newest
        self.groups |= other.groups
        self.first_ever = min(self.first_ever, other.first_ever)
        self.also |= {(other.metric, other.label): None} | other.also

    def triage(self, given: Mapping[str, Triage]) -> Triage:
        """Return the most demanding state of its ids."""
        triages = [given.get(id_, Triage()).now(self.at.values()) for id_ in self.ids]
        return min(triages, key=lambda triage: STATES.index(triage.state))

    def trend(self, span: TimeSpan) -> str:
        """Return ``begun`` if it began in the last quarter of the window, ``rising`` if it is more frequent there, else
        ``""``.
        """
        if self.first_ever >= span.last_quarter:
            return "begun"
        late = sum(at >= span.last_quarter for at in self.at.values())
        quarters = (span.last_quarter - max(self.first_ever, span.since)) / (span.until - span.last_quarter)
        if late >= max(_LEAST, _RISES * (len(self.at) - late) / quarters):
            return "rising"
        return ""

    def rank(self, span: TimeSpan, state: State = "new") -> tuple[bool, bool, int, bool, int, int]:
        grave = gravity([self.label, *(label for _, label in self.also)], self.severity)
        return (state in SETTLED, *grave, not self.trend(span), -len(self.at), -self.newest.at)


def incidents(failed: Iterable[FailedResult], groups: Mapping[str, FailureGroupRow]) -> list[Incident]:
    """Group failures by cause, unordered.

    ``failed``: oldest first. Merges groups with the same words and findings about the same steps. If a
    session has a finding with a group, its findings without a group are left out.
    """
    failed = [*failed]
    explained = {failure.no for failure in failed if failure.no < 0 and failure.group}
    by_cause: dict[tuple[str, ...], Incident] = {}
    for failure in failed:
        if not failure.group and failure.no in explained:
            continue
        group = groups.get(failure.group)
        key = _cause(failure, group)
        if key not in by_cause:
            by_cause[key] = _incident(failure, group, key)
        by_cause[key].add(failure, _first_ms(failure, group))
    return _by_steps(by_cause.values())


def known_ids(failed: Iterable[FailedResult], groups: Mapping[str, FailureGroupRow]) -> set[str]:
    """Return all ids of these failures' incidents in any window."""
    return {*groups, *(_id(failure, _cause(failure, groups.get(failure.group))) for failure in failed)}


def _id(failure: FailedResult, cause: tuple[str, ...]) -> str:
    return failure.group or group_id("\n".join(cause))


def _cause(failure: FailedResult, group: FailureGroupRow | None) -> tuple[str, str, str]:
    if group is not None:
        return failure.metric, failure.label, plain(group.text)
    return failure.metric, failure.label, failure.group or plain(failure.reason)


def _incident(failure: FailedResult, group: FailureGroupRow | None, cause: tuple[str, ...]) -> Incident:
    id_ = _id(failure, cause)
    severity, text = failure.severity or severity_of(failure.label), failure.reason
    if group is not None:
        severity, text = group.severity, group.text
    return Incident(id_, failure.metric, failure.label, severity, failure, _first_ms(failure, group), text)


def _first_ms(failure: FailedResult, group: FailureGroupRow | None) -> int:
    return failure.at if group is None else min(failure.at, int(group.first_at * 1000))


def _by_steps(incidents: Iterable[Incident]) -> list[Incident]:
    kept: list[Incident] = []
    hosts: dict[tuple[str, str], Incident] = {}
    for incident in sorted(incidents, key=lambda incident: (incident.newest.no > 0, -len(incident.steps))):
        host = _host(incident, hosts)
        if host is not None:
            host.take(incident)
            continue
        kept.append(incident)
        for place in incident.steps:
            hosts.setdefault(place, incident)
    return kept


def _host(incident: Incident, hosts: Mapping[tuple[str, str], Incident]) -> Incident | None:
    run, step = next(iter(incident.steps))
    for place in ((run, _WHOLE), (run, step)):
        host = hosts.get(place)
        if host is not None and host.covers(incident):
            return host
    return None


class IncidentRow(BaseModel):
    """An incident within a window.

    ``ids``: names for its state. ``grouped``: they are in results (`metadata.failure_group.id`). ``also``: other
    metrics and labels at the same steps. ``trend``: `begun`, `rising` or empty. ``runs``: runs, or sessions if its
    metric is of sessions. ``first_at``: first seen, perhaps earlier. ``among``: runs or sessions of its agents in the
    window.
    ``dismissed``: runs whose finding people dismissed. ``spark``: ``runs`` over the window. Other fields: newest
    failure.
    """

    id: str
    ids: list[str]
    grouped: bool
    metric: str
    label: str
    also: list[tuple[str, str]]
    severity: str
    triage: Triage
    trend: str
    runs: int
    among: int
    dismissed: int
    first_at: Milliseconds
    last_at: Milliseconds
    agents: list[str]
    spark: list[int]
    reason: str
    trace_id: str | None
    session_id: str | None

    @classmethod
    def of(
        cls, incident: Incident, span: TimeSpan, triage: Triage, trend: str, body: Mapping[str, Any], **more: Any
    ) -> Self:
        """Convert an incident. ``body``: its newest result or empty. ``more``: further fields."""
        return cls(
            id=incident.id,
            ids=incident.ids,
            grouped=bool(incident.groups),
            metric=incident.metric,
            label=excerpt(incident.label, 60) or "",
            also=[(metric, excerpt(label, 60) or "") for metric, label in incident.also],
            severity=incident.severity,
            triage=triage,
            trend=trend,
            runs=len(incident.at),
            among=incident.among,
            dismissed=incident.dismissed,
            first_at=min(incident.first_ever, *incident.at.values()),
            last_at=max(incident.at.values()),
            agents=[excerpt(agent, 80) or "" for agent, _ in incident.agents.most_common(5)],
            spark=span.spark(incident.at.values()),
            reason=excerpt(body.get("reason") or incident.text, 300) or "",
            trace_id=incident.newest.trace_id or body.get("trace_id") or None,
            session_id=body.get("session_id"),
            **more,
        )


class IncidentPart(BaseModel):
    """Runs of an agent, version or model within the window. ``failed``, ``spark``: of the incident."""

    kind: str
    name: str
    runs: int
    failed: int
    spark: list[int]


class IncidentDetail(IncidentRow):
    """An incident with its runs over time and by part.

    ``step``: milliseconds per bar of ``all`` and ``failed``, from ``since``. ``history``: all states, newest first.
    """

    since: Milliseconds
    until: Milliseconds
    step: int
    all: list[int]
    failed: list[int]
    parts: list[IncidentPart]
    examples: list[TraceRow]
    history: list[Triage]


class PageAgent(BaseModel):
    """An agent within a window.

    ``spark``: runs over time. ``bad``: failed runs. ``us``, ``us95``: median and 95th percentile latency. ``tokens``,
    ``usd``: medians per run, or null.
    """

    agent: str
    runs: int
    failed: int
    spark: list[int]
    bad: list[int]
    us: int | None
    us95: int | None
    tokens: int | None
    usd: float | None


def over_time(buckets: Sequence[AgentBucket]) -> tuple[list[int], list[int]]:
    runs, failed = [0] * BARS, [0] * BARS
    for bucket in buckets:
        bar = min(BARS - 1, max(0, bucket.bucket))
        runs[bar] += bucket.runs
        failed[bar] += bucket.failed
    return runs, failed


def by_agent(buckets: Sequence[AgentBucket], measured: Mapping[str, Sequence[Measures]]) -> list[PageAgent]:
    """Return rows by agent, most failures first. ``measured``: of each agent's runs."""
    rows: dict[str, PageAgent] = {}
    for bucket in buckets:
        row = rows.get(bucket.agent)
        if row is None:
            row = rows[bucket.agent] = _agent_row(bucket.agent, measured.get(bucket.agent, ()))
        part = min(SPARKS - 1, max(0, bucket.bucket * SPARKS // BARS))
        row.runs += bucket.runs
        row.failed += bucket.failed
        row.spark[part] += bucket.runs
        row.bad[part] += bucket.failed
    return sorted(rows.values(), key=lambda row: (-row.failed, -row.runs, row.agent))


def _agent_row(agent: str, runs: Sequence[Measures]) -> PageAgent:
    row = PageAgent(
        agent=agent,
        runs=0,
        failed=0,
        spark=[0] * SPARKS,
        bad=[0] * SPARKS,
        us=None,
        us95=None,
        tokens=None,
        usd=None,
    )
    row.us, row.us95, row.tokens, row.usd = medians(runs)
    return row


def medians(runs: Sequence[Measures]) -> tuple[int | None, int | None, int | None, float | None]:
    """Return median and 95th percentile of the latency in microseconds, and the medians of tokens and cost; ``None`` if
    unknown."""
    latencies, costs = sorted(us for us, _, _ in runs), [usd for _, _, usd in runs if usd is not None]
    usd = median(costs) if costs else None
    if not runs:
        return None, None, None, usd
    at95 = latencies[math.ceil(0.95 * len(latencies)) - 1]
    return int(median(latencies)), at95, int(median(tokens for _, tokens, _ in runs)), usd
