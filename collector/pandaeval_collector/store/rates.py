"""Counts results by verdict, and runs by time."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NOT_FAILED, Wanted, carried, conditions, result_conditions

_COUNTED = "FROM listed AS l CROSS JOIN results AS r ON r.about = l.no AND r.verdict > '' AND {results} AND {where}"
_RATES = f"""
    SELECT metric, l.agent, verdict, count(*) {_COUNTED} AND +l.no > 0 AND metric < 'turn.' GROUP BY 1, 2, 3
    UNION ALL SELECT metric, agent, verdict, count(*) FROM (
        SELECT metric, l.agent, iif(max(verdict = 'failed'), 'failed', max(verdict)) AS verdict
        {_COUNTED} AND +l.no > 0 AND metric >= 'turn.' GROUP BY +l.no, metric) GROUP BY 1, 2, 3
    UNION ALL SELECT metric, NULL, verdict, count(*) {_COUNTED} AND l.no < 0 GROUP BY 1, 3
    UNION ALL SELECT metric, m.agent, verdict, count(DISTINCT l.no) {_COUNTED} AND l.no < 0 CROSS JOIN listed AS m
        ON m.session = l.session AND m.session > 0 AND +m.no > 0 AND {{of}} GROUP BY 1, 2, 3"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class AgentBucket:
    bucket: int
    agent: str
    runs: int
    failed: int


def read_rates(finder: Finder, wanted: Wanted) -> list[tuple[str, str | None, str, int]]:
    """Count results as (metric, agent, verdict, count).

    A session counts once without an agent, and once for each agent. A run's turns count once, by the worst turn.
    """
    where, results = conditions(wanted.of_unit()), result_conditions(wanted)
    values, of = (*results.values, *where.values), carried(wanted, "m")
    times = _RATES.count("{where}")
    return finder.read(_RATES.format(where=where, results=results, of=of), *values * times, *of.values)


def count_runs(finder: Finder, wanted: Wanted) -> tuple[int, int, int]:
    """Count the wanted runs, the failed runs among them, and the wanted sessions with results."""
    where = conditions(wanted)
    counted = f"total(no > 0), total(no > 0 AND badness < {NOT_FAILED:g}), total(no < 0)"
    [counts] = finder.read(f"SELECT {counted} FROM listed AS l WHERE {where}", *where.values)  # noqa: S608
    runs, failed, sessions = map(int, counts)
    return runs, failed, sessions


def runs_over_time(finder: Finder, wanted: Wanted, since: int, step: int) -> list[AgentBucket]:
    """Count wanted runs by agent and bucket of ``step`` milliseconds from ``since``."""
    columns = f"(at - ?) / ? AS bucket, agent, count(*), sum(badness < {NOT_FAILED:g})"
    return [AgentBucket(*row) for row in finder.of_traces(wanted, columns, "GROUP BY bucket, agent", since, step)]
