"""Reads failed runs and sessions, their groups, and triage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import orjson

from pandaeval_collector.base.result import DISMISSED
from pandaeval_collector.store import numbers, people
from pandaeval_collector.store.failure_groups import FailureGroupRow, groups
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import BODY, NOT_FAILED, OF_NAMED, Wanted, conditions, result_conditions
from pandaeval_collector.store.triage import Triage, history, triages

MOST_FAILED = 20_000
"""Maximum number of failed runs read, newest first."""
_FAILED_RESULTS = f"""
    SELECT json_group_array(json_array(l.no, l.at,
        CASE l.agent WHEN '' THEN json_extract({BODY}, '$.agent') ELSE l.agent END, r.metric, r.seq,
        json_extract({BODY}, '$.label'), json_extract({BODY}, '$.metadata.failure_group.id'),
        json_extract({BODY}, '$.metadata.failure_group.severity'), '', json_extract({BODY}, '$.span_ids[#-1]'),
        json_extract({BODY}, iif(l.no > 0, '$.trace_id', '$.metadata.blame.trace_id'))))
    FROM listed AS l JOIN results AS r ON r.about = l.no
    WHERE l.no IN ({{failed}}) AND r.success = 0
        AND (l.no > 0 OR json_extract({BODY}, '$.evaluator.kind') != 'math')
        AND r.verdict IS NOT NULL"""  # noqa: S608
_BROKEN_RUNS = """
    SELECT json_group_array(json_array(no, at, agent, '', 0, 'run failed', '', '',
        json_extract(CAST(facts AS TEXT), '$.error'), '', json_extract(CAST(facts AS TEXT), '$.id'))) FROM listed AS b
    WHERE no IN ({failed}) AND broken AND NOT EXISTS (
        SELECT 1 FROM results AS r WHERE r.about = b.no AND r.success = 0)"""


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A current failed result, or a failed run (``metric`` is empty).

    ``no``: trace or session. ``group``: id or ``""``. ``at``: Unix milliseconds. ``step``: last span. ``trace_id``: own
    or blamed.
    """

    no: int
    at: int
    agent: str
    metric: str
    seq: int
    label: str
    group: str
    severity: str
    reason: str
    step: str = ""
    trace_id: str = ""


def read_failures(
    finder: Finder, wanted: Wanted
) -> tuple[list[FailedResult], dict[str, FailureGroupRow], Mapping[str, Triage]]:
    """Return failures, oldest first, groups by id, and triage. Session formulas are omitted."""
    where = conditions(wanted)
    failed = f"""SELECT no FROM listed AS l WHERE {where} AND badness < {NOT_FAILED:g}
                 ORDER BY at DESC LIMIT {MOST_FAILED}"""  # noqa: S608
    with finder.reads.snapshot() as reader:
        # All in one row: each row waits for the interpreter lock, which can take milliseconds.
        (scored,) = reader.execute(_FAILED_RESULTS.format(failed=failed), where.values).fetchone()
        (broken,) = reader.execute(_BROKEN_RUNS.format(failed=failed), where.values).fetchone()
        known, given = {row.id: row for row in groups(reader)}, triages(reader)
    rows = (
        FailedResult(no, at, agent or "", metric, seq, *(text or "" for text in texts))
        for no, at, agent, metric, seq, *texts in (*orjson.loads(scored), *orjson.loads(broken))
    )
    return sorted(rows, key=lambda row: (row.at, row.no, row.seq)), known, given


def dismissed_by_group(finder: Finder, wanted: Wanted) -> Mapping[str, set[int]]:
    """Return the dismissed runs of each failure group, as traces of the list."""
    wanted = replace(wanted, failed=None, label=DISMISSED, outcome=None, success=None, incident=None)
    runs, results = conditions(wanted.of_unit()), result_conditions(wanted)
    query = f"""SELECT json_extract({BODY}, '$.metadata.failure_group.id'), l.no FROM results AS r
                CROSS JOIN listed AS l
                ON l.no = iif(r.about > 0, r.about, (SELECT m.no FROM members AS m WHERE {OF_NAMED}))
                WHERE r.verdict IS NOT NULL AND {runs} AND {results} AND r.about IN ({{marks}})"""  # noqa: S608
    found = defaultdict(set)
    with finder.reads.snapshot() as reader:
        nos = numbers.of_units(reader, {unit for unit, _ in people.dismissed(reader)})
        for group, no in numbers.each_of(reader, query, nos, *runs.values, *results.values):
            found[group].add(no)
    return found


def triage_history(finder: Finder, incident: Collection[str]) -> list[Triage]:
    with finder.reads.snapshot() as reader:
        return history(reader, incident)


def read_shares(finder: Finder, wanted: Wanted, nos: Collection[int]) -> list[tuple[str, str, int, list[int]]]:
    """Return (agent, version or model; name; runs; matching runs of ``nos``), most matches first."""
    where = conditions(wanted)
    runs = f"FROM listed AS l WHERE {where} AND +no > 0"
    counted = "count(*), json_group_array(no) FILTER (WHERE no IN (SELECT value FROM json_each(?)))"
    asked = [f"SELECT 'agent', agent, {counted} FROM (SELECT agent, no {runs}) GROUP BY agent"]  # noqa: S608
    for kind, key in (("version", "service.version"), ("model", "gen_ai.request.model")):
        asked.append(f"""SELECT '{kind}', substr(pair, {len(key) + 2}), {counted} FROM (
            SELECT p.pair, a.no FROM attribute_pairs AS p JOIN listed_attributes AS a ON a.pair = p.id
            WHERE p.pair BETWEEN '{key}=' AND '{key}>' AND a.no IN (SELECT no {runs})) GROUP BY pair""")  # noqa: S608
    rows = finder.read(" UNION ALL ".join(asked), *[numbers.json_list(nos), *where.values] * len(asked))
    found = [(kind, name, count, orjson.loads(failed)) for kind, name, count, failed in rows]
    return sorted((share for share in found if share[3]), key=lambda share: -len(share[3]))
