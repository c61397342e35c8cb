"""Reads what failed within a window from the store: failing results by their group, and runs over time by agent."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_collector.store.numbers import json_list
from pandaeval_collector.store.wanted import Wanted, conditions

MOST_FAILED = 20_000
"""Most failed runs that are read, the newest."""
MOST_MEASURED = 5_000
"""Most runs of which latencies, tokens and costs are read, the newest."""
_BODY = "CAST(r.body AS TEXT)"


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A standing result that failed, or a run that ended with an error of which no result speaks (``metric`` is empty
    then). ``no``: of its trace or session; ``group``: id of its group of failures, ``""`` for none; ``seq``: of the
    result; ``at``: when its trace began, Unix milliseconds."""

    no: int
    at: int
    agent: str
    metric: str
    seq: int
    label: str
    group: str
    severity: str
    reason: str


@dataclass(frozen=True, slots=True)
class AgentBucket:
    """How many runs of an agent began in a bucket of time, and how many of them failed."""

    bucket: int
    agent: str
    runs: int
    failed: int


def oldest(reader: sqlite3.Connection, wanted: Wanted) -> int | None:
    """Returns when the first wanted run began, Unix milliseconds; ``None`` where there is none."""
    where, values = conditions(wanted)
    query = f"SELECT min(at) FROM listed AS l WHERE {' AND '.join([*where, '+no > 0'])}"  # noqa: S608
    found: int | None = reader.execute(query, values).fetchone()[0]
    return found


def buckets(reader: sqlite3.Connection, wanted: Wanted, since: int, step: int) -> list[AgentBucket]:
    """Counts the wanted runs by bucket of ``step`` milliseconds from ``since`` on, and by agent."""
    where, values = conditions(wanted)
    rows = reader.execute(
        f"""SELECT (at - ?) / ? AS bucket, agent, count(*), total(badness < {NOT_FAILED:g}) FROM listed AS l
            WHERE {" AND ".join([*where, "+no > 0"])} GROUP BY bucket, agent""",  # noqa: S608
        (since, step, *values),
    )
    return [AgentBucket(bucket, agent, runs, int(failed)) for bucket, agent, runs, failed in rows]


def failed_results(reader: sqlite3.Connection, wanted: Wanted) -> list[FailedResult]:
    """Returns what failed of the wanted runs and sessions, oldest first. A formula over a session is left out: it sums
    up what failed in the session's runs."""
    where, values = conditions(wanted)
    failed = f"""SELECT no FROM listed AS l WHERE {" AND ".join([*where, f"badness < {NOT_FAILED:g}"])}
                 ORDER BY at DESC LIMIT {MOST_FAILED}"""  # noqa: S608
    # All in one row: after each row the interpreter is waited for, which the line may hold for milliseconds.
    (told,) = reader.execute(
        f"""SELECT json_group_array(json_array(l.no, l.at,
                CASE l.agent WHEN '' THEN json_extract({_BODY}, '$.agent') ELSE l.agent END, r.metric, r.seq,
                json_extract({_BODY}, '$.label'), json_extract({_BODY}, '$.metadata.failure_group.id'),
                json_extract({_BODY}, '$.metadata.failure_group.severity'), ''))
            FROM listed AS l JOIN results AS r ON r.about = l.no
            WHERE l.no IN ({failed}) AND r.success = 0
                AND (l.no > 0 OR json_extract({_BODY}, '$.evaluator.kind') != 'math')
                AND r.seq = (SELECT max(seq) FROM results AS n
                             WHERE n.about = r.about AND n.metric = r.metric AND n.unit = r.unit)""",  # noqa: S608
        values,
    ).fetchone()
    (broken,) = reader.execute(
        f"""SELECT json_group_array(json_array(no, at, agent, '', 0, 'run failed', '', 'high',
                json_extract(CAST(facts AS TEXT), '$.error'))) FROM listed AS b
            WHERE no IN ({failed}) AND broken AND NOT EXISTS (
                SELECT 1 FROM results AS r WHERE r.about = b.no AND r.success = 0)""",  # noqa: S608
        values,
    ).fetchone()
    rows = [*orjson.loads(told), *orjson.loads(broken)]
    found = (
        FailedResult(no, at, agent or "", metric, seq, *(each or "" for each in said))
        for no, at, agent, metric, seq, *said in rows
    )
    return sorted(found, key=_time)


def _time(row: FailedResult) -> tuple[int, int, int]:
    return row.at, row.no, row.seq


def bodies(reader: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """Returns the JSON objects of results by their numbers."""
    rows = reader.execute(
        "SELECT seq, body FROM results WHERE seq IN (SELECT value FROM json_each(?))", (json_list(seqs),)
    )
    return {seq: orjson.loads(body) for seq, body in rows}


def measured(reader: sqlite3.Connection, wanted: Wanted) -> dict[str, list[tuple[int, int, float | None]]]:
    """Returns (microseconds, tokens, US dollars) of the newest wanted runs by agent."""
    where, values = conditions(wanted)
    (told,) = reader.execute(
        f"""SELECT json_group_array(json_array(agent, json_extract(f, '$.us'),
                json_extract(f, '$.tokens[0]') + json_extract(f, '$.tokens[1]'), json_extract(f, '$.usd')))
            FROM (SELECT agent, CAST(facts AS TEXT) AS f FROM listed AS l
                  WHERE {" AND ".join([*where, "+no > 0"])} ORDER BY at DESC LIMIT {MOST_MEASURED})""",  # noqa: S608
        values,
    ).fetchone()
    found: dict[str, list[tuple[int, int, float | None]]] = {}
    for agent, us, tokens, usd in orjson.loads(told):
        found.setdefault(agent, []).append((us or 0, tokens or 0, usd))
    return found
