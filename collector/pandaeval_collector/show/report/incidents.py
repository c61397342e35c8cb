"""Makes incidents of what failed within a window: one for each cause, the gravest, newest and rising first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from pydantic import BaseModel

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.show.view.rows import Milliseconds
from pandaeval_collector.store import FailureGroupRow
from pandaeval_collector.store.failures import gravity, plain, severity_of
from pandaeval_collector.store.finding import AgentBucket, FailedResult

BARS, SPARKS = 72, 24
"""Bars of the chart over time, and of the small ones beside a name."""
_RISES, _LEAST = 2.0, 3
"""An incident is rising if its last quarter has so many times the runs of an earlier one, and at least so many."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time from ``since`` until ``until``, Unix milliseconds."""

    since: int
    until: int

    @property
    def step(self) -> int:
        """The milliseconds that one bar of the chart covers."""
        return max(1000, math.ceil((self.until - self.since) / BARS / 1000) * 1000)

    def spark(self, times: Iterable[int]) -> list[int]:
        """Returns how many of ``times`` lie in each of the :data:`SPARKS` equal parts of the span."""
        counts = Counter(min(SPARKS - 1, max(0, (at - self.since) * SPARKS // self._width)) for at in times)
        return [counts[part] for part in range(SPARKS)]

    @property
    def _width(self) -> int:
        return max(1, self.until - self.since)

    @property
    def last_quarter(self) -> int:
        return self.until - self._width // 4


@dataclass(slots=True)
class Incident:
    """All failures of one cause in a window. ``at``: when each of its runs began, by the number of the run; ``newest``:
    its newest failure; ``first_ever``: when it was first seen, perhaps before the window."""

    metric: str
    label: str
    severity: str
    newest: FailedResult
    first_ever: int
    text: str = ""
    at: dict[int, int] = field(default_factory=dict)
    agents: Counter[str] = field(default_factory=Counter)
    groups: dict[str, None] = field(default_factory=dict)

    def state(self, span: TimeSpan) -> str:
        """Returns ``new`` if the incident is unknown before the last quarter of the window, ``rising`` if it is more
        frequent there than before, else ``""``."""
        if self.first_ever >= span.last_quarter:
            return "new"
        late = sum(at >= span.last_quarter for at in self.at.values())
        quarter_before = (len(self.at) - late) / 3
        return "rising" if late >= max(_LEAST, _RISES * quarter_before) else ""

    def rank(self, span: TimeSpan) -> tuple[bool, int, bool, int, int]:
        """Returns a key to sort by, most urgent first."""
        return (*gravity([self.label], self.severity), not self.state(span), -len(self.at), -self.newest.at)


def incidents(failed: Iterable[FailedResult], groups: Mapping[str, FailureGroupRow]) -> list[Incident]:
    """Groups failures by cause, in no order. ``failed``: oldest first; ``groups``: known groups of failures by id.
    Groups of several agents with the same words are one incident."""
    found: dict[tuple[str, ...], Incident] = {}
    for each in failed:
        group = groups.get(each.group)
        text = each.reason if group is None else group.text
        key = (each.metric, each.label, each.group if group is None and each.group else plain(text))
        known = found.get(key)
        first = each.at if group is None else min(each.at, int(group.first_at * 1000))
        if known is None:
            severity = group.severity if group is not None else each.severity or severity_of(each.label)
            known = found[key] = Incident(each.metric, each.label, severity, each, first, text)
        known.first_ever, known.newest = min(known.first_ever, first), each
        known.at[each.no] = each.at
        known.agents[each.agent] += 1
        known.groups[each.group] = None
    return [*found.values()]


class PageIncident(BaseModel):
    """What failed for one cause within a window. ``state``: `new`, `rising` or empty; ``first_at``: since when it is
    known, before the window perhaps; ``spark``: its runs over the window; the rest is of its newest failure."""

    id: str
    groups: list[str]
    metric: str
    label: str
    severity: str
    state: str
    runs: int
    first_at: Milliseconds
    last_at: Milliseconds
    agents: list[str]
    spark: list[int]
    reason: str
    trace_id: str | None
    session_id: str | None


class PageAgent(BaseModel):
    """An agent within a window. ``spark``: its runs over time; ``bad``: those that failed; ``us`` and ``us95``: median
    and 95th percentile of the latency; ``tokens`` and ``usd``: medians by run; null where they were not read."""

    agent: str
    runs: int
    failed: int
    spark: list[int]
    bad: list[int]
    us: int | None
    us95: int | None
    tokens: int | None
    usd: float | None


def shown_incident(
    incident: Incident, span: TimeSpan, state: str, bodies: Mapping[int, Mapping[str, Any]]
) -> PageIncident:
    """Returns the incident as the page shows it. ``state``: see :meth:`Incident.state`; ``bodies``: JSON objects of
    results by number, among them its newest where there is one."""
    example = bodies.get(incident.newest.seq, {})
    groups = [group for group in incident.groups if group]
    return PageIncident(
        id=groups[0] if groups else "",
        groups=groups,
        metric=incident.metric,
        label=excerpt(incident.label, 60) or "",
        severity=incident.severity,
        state=state,
        runs=len(incident.at),
        first_at=min(incident.first_ever, *incident.at.values()),
        last_at=max(incident.at.values()),
        agents=[excerpt(agent, 80) or "" for agent, _ in incident.agents.most_common(5)],
        spark=span.spark(incident.at.values()),
        reason=excerpt(example.get("reason") or incident.text, 300) or "",
        trace_id=example.get("trace_id") or None,
        session_id=example.get("session_id"),
    )


def over_time(found: Sequence[AgentBucket]) -> tuple[list[int], list[int]]:
    """Returns how many runs began in each bar of the chart, and how many of them failed."""
    runs, failed = [0] * BARS, [0] * BARS
    for each in found:
        bar = min(BARS - 1, max(0, each.bucket))
        runs[bar] += each.runs
        failed[bar] += each.failed
    return runs, failed


def by_agent(
    found: Sequence[AgentBucket], measured: Mapping[str, Sequence[tuple[int, int, float | None]]]
) -> list[PageAgent]:
    """Returns a row per agent, most failures first. ``measured``: latency in microseconds, tokens and cost of each
    agent's runs, of which the medians are shown, and the 95th percentile of the latency."""
    rows: dict[str, PageAgent] = {}
    for each in found:
        row = rows.get(each.agent)
        if row is None:
            runs = measured.get(each.agent, ())
            took, costs = sorted(us for us, _, _ in runs), [usd for _, _, usd in runs if usd is not None]
            row = rows[each.agent] = PageAgent(
                agent=each.agent,
                runs=0,
                failed=0,
                spark=[0] * SPARKS,
                bad=[0] * SPARKS,
                us=int(median(took)) if took else None,
                us95=took[min(len(took) - 1, math.ceil(0.95 * len(took)) - 1)] if took else None,
                tokens=int(median(tokens for _, tokens, _ in runs)) if runs else None,
                usd=median(costs) if costs else None,
            )
        part = min(SPARKS - 1, max(0, each.bucket * SPARKS // BARS))
        row.runs += each.runs
        row.failed += each.failed
        row.spark[part] += each.runs
        row.bad[part] += each.failed
    return sorted(rows.values(), key=lambda row: (-row.failed, -row.runs, row.agent))
