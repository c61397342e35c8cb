"""Reads latency, tokens and US dollars of runs and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import BODY, Wanted, conditions

MOST_MEASURED = 5_000
"""Maximum runs whose latencies, tokens and costs are read, newest first."""
_COST_NAMES: Mapping[str, str] = {
    "agent": "l.agent",
    "user": "l.user",
    "session": "(SELECT session_id FROM sessions WHERE sessions.no = l.session)",
    "day": "date(l.at / 1000, 'unixepoch')",
}
_OF_JUDGES = f"""
    SELECT l.no AS run, sum(json_extract({BODY}, '$.tokens')) AS judge_tokens,
        sum(nullif(json_extract({BODY}, '$.cost_usd'), 0)) AS judge_usd,
        sum(json_extract({BODY}, '$.tokens') > 0 AND json_extract({BODY}, '$.cost_usd') <= 0) AS judge_unpriced
    FROM runs AS l JOIN results AS r ON r.about IN (l.no, iif(l.no = l.last, -l.session, NULL))
    WHERE json_extract({BODY}, '$.evaluator.kind') = 'llm' GROUP BY l.no"""  # noqa: S608
"""Costs of the verdicts on each run. The verdict on a session counts for the session's last run."""


def read_measures(finder: Finder, wanted: Wanted) -> dict[str, list[tuple[int, int, float | None]]]:
    """Return (microseconds, tokens, US dollars) of the newest wanted runs, by agent."""
    where = conditions(wanted)
    # All in one row, as in :func:`pandaeval_collector.store.failing.read_failures`.
    [(read,)] = finder.read(
        f"""SELECT json_group_array(json_array(agent, json_extract(f, '$.us'),
                json_extract(f, '$.tokens[0]') + json_extract(f, '$.tokens[1]'), json_extract(f, '$.usd')))
            FROM (SELECT agent, CAST(facts AS TEXT) AS f FROM listed AS l
                  WHERE {where} AND +no > 0 ORDER BY at DESC LIMIT {MOST_MEASURED})""",  # noqa: S608
        *where.values,
    )
    of_agents: dict[str, list[tuple[int, int, float | None]]] = {}
    for agent, us, tokens, usd in orjson.loads(read):
        of_agents.setdefault(agent, []).append((us or 0, tokens or 0, usd))
    return of_agents


def read_costs(finder: Finder, wanted: Wanted, by: str, limit: int, runs: int = MOST_MEASURED) -> list[tuple[Any, ...]]:
    """Return rows of costs of the newest ``runs`` by agent, user, session or day.

    Columns: name, runs, tokens in, tokens out, US dollars, unpriced runs; then of verdicts: tokens, US dollars,
    unpriced verdicts.
    """
    where = conditions(wanted)
    order = "name DESC" if by == "day" else "total(json_extract(f, '$.usd')) + total(judge_usd) DESC, name"
    return finder.read(
        f"""WITH runs AS (
                SELECT *, CAST(facts AS TEXT) AS f, iif(session, max(no) OVER (PARTITION BY session), 0) AS last
                FROM (SELECT * FROM listed AS l WHERE {where} AND +no > 0 ORDER BY at DESC LIMIT {runs:d}))
            SELECT nullif({_COST_NAMES[by]}, '') AS name, count(*),
                CAST(total(json_extract(f, '$.tokens[0]')) AS INTEGER),
                CAST(total(json_extract(f, '$.tokens[1]')) AS INTEGER),
                sum(json_extract(f, '$.usd')) AS usd, count(json_extract(f, '$.unpriced')),
                CAST(total(judge_tokens) AS INTEGER), sum(judge_usd), CAST(total(judge_unpriced) AS INTEGER)
            FROM runs AS l LEFT JOIN ({_OF_JUDGES}) AS j ON j.run = l.no
            GROUP BY name ORDER BY {order} LIMIT {limit:d}""",  # noqa: S608
        *where.values,
    )
