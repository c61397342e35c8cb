"""Finds traces, sessions and results for display, in pages and with a time limit, so queries cannot block scoring."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from pandaeval_collector.store import listed_pages as pages, numbers, people
from pandaeval_collector.store.chunks import Part, contents
from pandaeval_collector.store.connection import Connections
from pandaeval_collector.store.failure_groups import FailureGroupRow, groups
from pandaeval_collector.store.listed import NOT_FAILED, Wanted, carried, chosen_by_index, conditions, result_conditions
from pandaeval_collector.store.listed_pages import (
    COLUMNS,
    OF_SESSION,
    Listed,
    ListedSession,
    Position,
    end_of,
    listed_of,
    results_about,
    sessions_of,
)
from pandaeval_collector.store.series_table import attributes_of
from pandaeval_collector.store.triage import Triage, history, triages

_T = TypeVar("_T")
_NAMES_AGE = 50.0
"""Names are read again after this multiple of the time that reading them took: 2 % of a reader's time at most."""

_PAGE = 200
"""Rows that :func:`every` reads at once."""
MOST_FAILED = 20_000
"""Most failed runs that are read, the newest."""
MOST_MEASURED = 5_000
"""Most runs of which latencies, tokens and costs are read, the newest."""
_WORSE_OF_SESSION = "o.session = l.session AND o.session > 0 AND (o.badness, o.no) < (l.badness, l.no)"
_BODY = "CAST(r.body AS TEXT)"
_FAILED_RESULTS = f"""
    SELECT json_group_array(json_array(l.no, l.at,
        CASE l.agent WHEN '' THEN json_extract({_BODY}, '$.agent') ELSE l.agent END, r.metric, r.seq,
        json_extract({_BODY}, '$.label'), json_extract({_BODY}, '$.metadata.failure_group.id'),
        json_extract({_BODY}, '$.metadata.failure_group.severity'), '', json_extract({_BODY}, '$.span_ids[#-1]'),
        json_extract({_BODY}, iif(l.no > 0, '$.trace_id', '$.metadata.blame.trace_id'))))
    FROM listed AS l JOIN results AS r ON r.about = l.no
    WHERE l.no IN ({{failed}}) AND r.success = 0
        AND (l.no > 0 OR json_extract({_BODY}, '$.evaluator.kind') != 'math')
        AND r.verdict IS NOT NULL"""  # noqa: S608
_BROKEN_RUNS = """
    SELECT json_group_array(json_array(no, at, agent, '', 0, 'run failed', '', '',
        json_extract(CAST(facts AS TEXT), '$.error'), '', json_extract(CAST(facts AS TEXT), '$.id'))) FROM listed AS b
    WHERE no IN ({failed}) AND broken AND NOT EXISTS (
        SELECT 1 FROM results AS r WHERE r.about = b.no AND r.success = 0)"""
_CORRECTNESS = f"""
    SELECT json_group_array(json_array(l.no, r.metric, json_extract({_BODY}, '$.agent'), r.success,
        iif(r.success IS NULL, json_extract({_BODY}, '$.metadata.open_question'), NULL),
        EXISTS (SELECT 1 FROM people_labels AS p WHERE p.unit = r.unit AND p.metric = r.metric AND passed IS NOT NULL),
        json_extract({_BODY}, '$.trace_id'), json_extract({_BODY}, '$.session_id')))
    FROM (SELECT no FROM listed ORDER BY at DESC LIMIT {MOST_FAILED}) AS l JOIN results AS r ON r.about = l.no
    WHERE r.metric IN ('trace.correctness', 'session.correctness')
        AND r.verdict IS NOT NULL"""  # noqa: S608
_COST_NAMES: Mapping[str, str] = {
    "agent": "l.agent",
    "user": "l.user",
    "session": "(SELECT session_id FROM sessions WHERE sessions.no = l.session)",
    "day": "date(l.at / 1000, 'unixepoch')",
}
_OF_JUDGES = f"""
    SELECT l.no AS run, sum(json_extract({_BODY}, '$.tokens')) AS judge_tokens,
        sum(nullif(json_extract({_BODY}, '$.cost_usd'), 0)) AS judge_usd,
        sum(json_extract({_BODY}, '$.tokens') > 0 AND json_extract({_BODY}, '$.cost_usd') <= 0) AS judge_unpriced
    FROM runs AS l JOIN results AS r ON r.about IN (l.no, iif(l.no = l.last, -l.session, NULL))
    WHERE json_extract({_BODY}, '$.evaluator.kind') = 'llm' GROUP BY l.no"""  # noqa: S608
"""Costs of the verdicts on each run; those on a session count for its last run."""
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
class StandingVerdict:
    """A current verdict of ``correctness``. ``no``: of its trace, or below zero of its session. ``question``: an
    undecided verdict's question to the owner. ``labelled``: people also gave a verdict.
    """

    no: int
    metric: str
    agent: str
    passed: bool | None
    question: str
    labelled: bool
    trace_id: str
    session_id: str | None


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A current failed result, or a run that ended with an error without a result (``metric`` is empty). ``no``: trace
    or session. ``group``: failure group id or ``""``. ``at``: the trace's start in Unix milliseconds. ``step``: last
    span named. ``trace_id``: its trace, or the trace that a session verdict blames.
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


@dataclass(frozen=True, slots=True)
class AgentBucket:
    """How many runs of an agent began in a bucket of time, and how many of them failed."""

    bucket: int
    agent: str
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list; ``next``: where the next page begins, ``None`` after the last."""

    rows: Sequence[Any]
    next: Position | None


def every(find: Callable[..., Page], wanted: Wanted, **options: Any) -> Iterator[Any]:
    """Yield all rows of a list, a page at a time. ``options``: further arguments of ``find``."""
    after = None
    while True:
        page = find(wanted, after=after, limit=_PAGE, **options)
        yield from page.rows
        after = page.next
        if after is None:
            return


class Finder:
    """Reads one store's file. Safe from any thread; each thread that reads has a connection. All of its queries raise
    :class:`pandaeval_collector.store.connection.TooSlowError` where they take too long."""

    def __init__(self, path: Path, limit_s: float = 5.0) -> None:
        """``path``: the data directory. ``limit_s``: how long a query may take."""
        self._reads = Connections(path, limit_s)
        self._names: tuple[float, dict[str, list[str]]] | None = None

    def close(self) -> None:
        """Close the connections of all threads."""
        self._reads.close()

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection, for reads without the time limit."""
        return self._reads.own()

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._reads.snapshot() as reader:
            return reader.execute(query, values).fetchall()

    def _of_traces(self, wanted: Wanted, columns: str, rest: str = "", *first: object) -> list[Any]:
        """Read ``columns`` of the wanted traces; ``first``: the values in the columns."""
        where = conditions(wanted)
        query = f"SELECT {columns} FROM listed AS l WHERE {where} AND +no > 0 {rest}"  # noqa: S608
        return self._read(query, *first, *where.values)

    def traces(
        self, wanted: Wanted, *, worst_first: bool = True, after: Position | None = None, limit: int = 50
    ) -> Page:
        """Return a page of agents' traces, worst first or newest first, as :class:`Listed` with their results."""
        find = pages.worst_first if worst_first else pages.newest_first
        with self._reads.snapshot() as reader:
            rows = find(reader, wanted, conditions(wanted).also("+no > 0"), after, limit + 1)
            shown = listed_of(reader, rows[:limit])
        return Page(shown, end_of(rows, limit, "badness" if worst_first else "at"))

    def sessions(self, wanted: Wanted, *, after: Position | None = None, limit: int = 50) -> Page:
        """Return a page of sessions and traces without a session, as :class:`ListedSession`, by the worst of their
        rows."""
        # A session is listed where its worst row that is wanted is.
        where, others = conditions(wanted), conditions(wanted, "o")
        worse = f"SELECT 1 FROM listed AS o WHERE {others} AND {_WORSE_OF_SESSION}"  # noqa: S608
        first, values = f"(session = 0 OR NOT EXISTS ({worse}))", others.values
        if wanted.text is not None:  # other rows are only read for a row with the text
            first, values = f"CASE WHEN {where} THEN {first} ELSE 0 END", where.values + values
        with self._reads.snapshot() as reader:
            rows = pages.worst_first(reader, wanted, where.also(first, *values), after, limit + 1)
            shown = sessions_of(reader, rows[:limit])
        return Page(shown, end_of(rows, limit, "badness"))

    def session(self, session_id: str, most: int = 2000) -> tuple[ListedSession, list[Listed]] | None:
        """Return a session with its ``most`` worst traces, ordered by start; ``None`` if the session is missing."""
        with self._reads.snapshot() as reader:
            number = numbers.of_sessions(reader, [session_id]).get(session_id)
            rows = reader.execute(
                f"SELECT {COLUMNS} FROM listed WHERE {OF_SESSION} ORDER BY badness, no LIMIT ?",  # noqa: S608
                (number, most),
            ).fetchall()
            if number is None or not rows:
                return None
            standing = reader.execute(
                f"SELECT {COLUMNS} FROM listed WHERE session = ? AND session > 0 ORDER BY badness, no LIMIT 1",  # noqa: S608
                (number,),
            ).fetchall()
            [whole] = sessions_of(reader, standing)
            traces = listed_of(reader, rows)
        return whole, sorted(traces, key=lambda row: (row.facts.get("at", 0), row.no))

    def members(self, session_id: str, most: int = 2000) -> list[str]:
        """Return the ids, in hex, of a session's first ``most`` traces by start."""
        rows = self._read(
            """SELECT trace_id FROM listed JOIN traces USING (no) WHERE listed.no > 0 AND listed.session > 0
               AND listed.session = (SELECT no FROM sessions WHERE session_id = ?) ORDER BY at, listed.no LIMIT ?""",
            *(session_id, most),
        )
        return [trace_id.hex() for (trace_id,) in rows]

    def counts(self, wanted: Wanted) -> tuple[int, int] | None:
        """Count the wanted traces, and those of them in which something failed; ``None`` where all that is stored had
        to be read for that."""
        if not chosen_by_index(replace(wanted, since_ms=0)):
            return None
        [(traces, failed)] = self._of_traces(wanted, "count(*), total(badness < ?)", "", NOT_FAILED)
        return traces, int(failed)

    def count(self, wanted: Wanted) -> int:
        """Count the agents' traces that are wanted."""
        return int(self._of_traces(wanted, "count(*)")[0][0])

    def of_sessions(self, session_ids: Sequence[str]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """Return the newest results about sessions themselves as JSON objects, by session id and metric key."""
        with self._reads.snapshot() as reader:
            known = numbers.of_sessions(reader, session_ids)
            results = results_about(reader, [-no for no in known.values()])
        return {session_id: results.get(-no, {}) for session_id, no in known.items()}

    def trace(self, trace_id: bytes) -> Listed | None:
        """Return the row of a trace; ``None`` where it is not listed."""
        with self._reads.snapshot() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
        return None if no is None else self.listed([no]).get(no)

    def listed(self, nos: Collection[int]) -> dict[int, Listed]:
        """Return rows of traces by their numbers."""
        with self._reads.snapshot() as reader:
            query = f"SELECT {COLUMNS} FROM listed WHERE no > 0 AND no IN ({{marks}})"  # noqa: S608
            return {row.no: row for row in listed_of(reader, [*numbers.each_of(reader, query, nos)])}

    def traces_from(self, prefix: str, most: int = 2) -> list[str]:
        """Return at most ``most`` ids of listed traces, in hex, that begin with ``prefix`` (32 hex digits at most)."""
        ends = [bytes.fromhex(prefix.ljust(32, digit)) for digit in "0f"]
        with self._reads.snapshot() as reader:
            rows = reader.execute(
                """SELECT trace_id FROM traces JOIN listed USING (no) WHERE traces.no >> 13 IN
                   (SELECT value FROM json_each(?)) AND trace_id BETWEEN ? AND ? LIMIT ?""",
                (numbers.blocks(reader), *ends, most),
            ).fetchall()
        return [trace_id.hex() for (trace_id,) in rows]

    def sessions_from(self, prefix: str, most: int = 2) -> list[str]:
        """Return at most ``most`` ids of sessions that begin with ``prefix``."""
        query = "SELECT session_id FROM sessions WHERE session_id >= ? AND session_id < ? LIMIT ?"
        return [id_ for (id_,) in self._read(query, prefix, prefix + chr(0x10FFFF), most)]

    def is_named(self, column: Literal["agent", "service", "environment", "user"], name: str) -> bool:
        """Whether a listed trace is of this agent, service, environment or user."""
        return bool(self._read(f"SELECT 1 FROM listed WHERE {column} = ? AND +no > 0 LIMIT 1", name))  # noqa: S608

    def attribute_keys(self, most: int = 2000) -> list[str]:
        """Return at most ``most`` keys of attributes by which traces are found."""
        query = "SELECT DISTINCT substr(pair, 1, instr(pair, '=') - 1) FROM attribute_pairs LIMIT ?"
        return sorted(key for (key,) in self._read(query, most))

    def contents(self, trace_id: bytes) -> list[Part]:
        """Return the stored requests of a trace, oldest first; none where its spans are not kept (any more)."""
        with self._reads.snapshot() as reader:
            return contents(reader, trace_id)

    def results(self, wanted: Wanted, *, before: int | None = None, limit: int = 100) -> Page:
        """Return a page of results as JSON objects, newest first, all revisions. ``before``: where the last page
        ended."""
        where, unit = result_conditions(wanted, "r"), conditions(wanted.of_unit())
        if before is not None:
            where = where.also("r.seq < ?", before)
        if unit.conditions:
            where = where.also(f"EXISTS (SELECT 1 FROM listed AS l WHERE l.no = r.about AND {unit})", *unit.values)  # noqa: S608
        query = f"SELECT r.seq, r.body FROM results AS r WHERE {where} ORDER BY r.seq DESC LIMIT ?"  # noqa: S608
        rows = self._read(query, *where.values, limit + 1)
        return _numbered([(seq, orjson.loads(body)) for seq, body in rows], limit)

    def labels(self, units: Sequence[str], metric: str | None, *, before: int | None = None, limit: int = 100) -> Page:
        """Return a page of people's verdicts, newest first, about any of ``units`` (all, if empty) and a metric (or
        all). ``before``: the number at which the last page ended."""
        with self._reads.snapshot() as reader:
            return _numbered(people.page(reader, units, metric, before, limit + 1), limit)

    def failing(self, wanted: Wanted) -> tuple[list[FailedResult], dict[str, FailureGroupRow], Mapping[str, Triage]]:
        """Return the failures of the wanted runs and sessions, oldest first, the groups of failures by id, and
        what people said of incidents. Left out is a formula over a session: it sums up what failed in its runs."""
        where = conditions(wanted)
        failed = f"""SELECT no FROM listed AS l WHERE {where} AND badness < {NOT_FAILED:g}
                     ORDER BY at DESC LIMIT {MOST_FAILED}"""  # noqa: S608
        with self._reads.snapshot() as reader:
            # All in one row: after each row the interpreter is waited for, which the line may hold for milliseconds.
            (scored,) = reader.execute(_FAILED_RESULTS.format(failed=failed), where.values).fetchone()
            (broken,) = reader.execute(_BROKEN_RUNS.format(failed=failed), where.values).fetchone()
            known, given = {row.id: row for row in groups(reader)}, triages(reader)
        rows = (
            FailedResult(no, at, agent or "", metric, seq, *(text or "" for text in texts))
            for no, at, agent, metric, seq, *texts in (*orjson.loads(scored), *orjson.loads(broken))
        )
        return sorted(rows, key=lambda row: (row.at, row.no, row.seq)), known, given

    def said_of(self, incident: Collection[str]) -> list[Triage]:
        """Return all states of an incident with these ids, newest first."""
        with self._reads.snapshot() as reader:
            return history(reader, incident)

    def labelled(self, calculate: Callable[[sqlite3.Connection], list[_T]]) -> list[_T]:
        """Return the result of ``calculate`` for the labels of people, empty without labels."""
        with self._reads.snapshot() as reader:
            (known,) = reader.execute("SELECT EXISTS (SELECT 1 FROM people_labels)").fetchone()
            return calculate(reader) if known else []

    def verdicts(self) -> list[StandingVerdict]:
        """Return the verdicts of ``correctness`` on the newest runs and sessions, newest first."""
        [(read,)] = self._read(_CORRECTNESS)
        return [
            StandingVerdict(
                no, metric, agent or "", None if passed is None else bool(passed), question or "", bool(known), *ids
            )
            for no, metric, agent, passed, question, known, *ids in orjson.loads(read)
        ]

    def over_time(self, wanted: Wanted, since: int, step: int) -> list[AgentBucket]:
        """Count the wanted runs by bucket of ``step`` milliseconds from ``since`` on, and by agent."""
        columns = f"(at - ?) / ? AS bucket, agent, count(*), sum(badness < {NOT_FAILED:g})"
        return [AgentBucket(*row) for row in self._of_traces(wanted, columns, "GROUP BY bucket, agent", since, step)]

    def oldest(self, wanted: Wanted) -> int | None:
        """Return when the first wanted run began, Unix milliseconds; ``None`` where there is none."""
        at: int | None = self._of_traces(wanted, "min(at)")[0][0]
        return at

    def measured(self, wanted: Wanted) -> dict[str, list[tuple[int, int, float | None]]]:
        """Return (microseconds, tokens, US dollars) of the newest wanted runs, by agent."""
        where = conditions(wanted)
        # All in one row, as in :meth:`failing`.
        [(read,)] = self._read(
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

    def costs(self, wanted: Wanted, by: str, limit: int) -> list[tuple[Any, ...]]:
        """Return rows (name, runs, tokens in and out, US dollars, runs with unknown price, then tokens, US dollars and
        unpriced count of verdicts) of the newest wanted runs. ``by``: ``agent``, ``user``, ``session`` or ``day``.
        """
        where = conditions(wanted)
        order = "name DESC" if by == "day" else "total(json_extract(f, '$.usd')) + total(judge_usd) DESC, name"
        return self._read(
            f"""WITH runs AS (
                    SELECT *, CAST(facts AS TEXT) AS f, iif(session, max(no) OVER (PARTITION BY session), 0) AS last
                    FROM (SELECT * FROM listed AS l WHERE {where} AND +no > 0 ORDER BY at DESC LIMIT {MOST_MEASURED}))
                SELECT nullif({_COST_NAMES[by]}, '') AS name, count(*),
                    CAST(total(json_extract(f, '$.tokens[0]')) AS INTEGER),
                    CAST(total(json_extract(f, '$.tokens[1]')) AS INTEGER),
                    sum(json_extract(f, '$.usd')) AS usd, count(json_extract(f, '$.unpriced')),
                    CAST(total(judge_tokens) AS INTEGER), sum(judge_usd), CAST(total(judge_unpriced) AS INTEGER)
                FROM runs AS l LEFT JOIN ({_OF_JUDGES}) AS j ON j.run = l.no
                GROUP BY name ORDER BY {order} LIMIT {limit:d}""",  # noqa: S608
            *where.values,
        )

    def bodies(self, seqs: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return the JSON objects of results by their numbers."""
        query = "SELECT seq, body FROM results WHERE seq IN (SELECT value FROM json_each(?))"
        return {seq: orjson.loads(body) for seq, body in self._read(query, numbers.json_list(seqs))}

    def shares(self, wanted: Wanted, nos: Collection[int]) -> list[tuple[str, str, int, list[int]]]:
        """Return (agent, version or model; its name; number of wanted runs; matching runs of ``nos``), most matches
        first. Entries without matches are omitted.
        """
        where = conditions(wanted)
        runs = f"FROM listed AS l WHERE {where} AND +no > 0"
        counted = "count(*), json_group_array(no) FILTER (WHERE no IN (SELECT value FROM json_each(?)))"
        asked = [f"SELECT 'agent', agent, {counted} FROM (SELECT agent, no {runs}) GROUP BY agent"]  # noqa: S608
        for kind, key in (("version", "service.version"), ("model", "gen_ai.request.model")):
            asked.append(f"""SELECT '{kind}', substr(pair, {len(key) + 2}), {counted} FROM (
                SELECT p.pair, a.no FROM attribute_pairs AS p JOIN listed_attributes AS a ON a.pair = p.id
                WHERE p.pair BETWEEN '{key}=' AND '{key}>' AND a.no IN (SELECT no {runs})) GROUP BY pair""")  # noqa: S608
        rows = self._read(" UNION ALL ".join(asked), *[numbers.json_list(nos), *where.values] * len(asked))
        found = [(kind, name, count, orjson.loads(failed)) for kind, name, count, failed in rows]
        return sorted((share for share in found if share[3]), key=lambda share: -len(share[3]))

    def names(self) -> dict[str, list[str]]:
        """Agents, services and environments that there are, to choose from: at most 200 of each. Those of a large store
        may be some seconds old."""
        known, begun = self._names, time.monotonic()
        if known is not None and begun < known[0]:
            return known[1]
        kinds = ("agent", "service", "environment")
        rows = self._read(f"SELECT DISTINCT {', '.join(kinds)} FROM listed WHERE +no > 0 LIMIT 20000")  # noqa: S608
        names = {kind: sorted({row[at] for row in rows} - {""})[:200] for at, kind in enumerate(kinds)}
        ended = time.monotonic()
        self._names = ended + _NAMES_AGE * (ended - begun), names
        return names

    def rates(self, wanted: Wanted) -> list[tuple[str, str | None, str, int]]:
        """Count the standing results of the wanted runs and sessions: (metric, agent, verdict, count). A session
        counts once for ``None``, and for each agent of its runs; a run once for a metric of turns, by its worst."""
        where, results = conditions(wanted.of_unit()), result_conditions(wanted, "r")
        values, of = (*results.values, *where.values), carried(wanted, "m")
        query = _RATES.format(where=where, results=results, of=of)
        return self._read(query, *values * _RATES.count("{where}"), *of.values)

    def counters(self, name: str) -> list[tuple[Mapping[str, str], int]]:
        """All series of a counter, at most 20,000: their attributes, and how often what these describe happened."""
        rows = self._read("SELECT attributes, total FROM series WHERE name = ? LIMIT 20000", name)
        return [(dict(attributes_of(attributes)), int(total)) for attributes, total in rows]

    def newest(self) -> int:
        """Return the number of the newest result; 0 where there is none."""
        return int(self._read("SELECT coalesce(max(seq), 0) FROM results")[0][0])

    def change(self) -> str:
        """A text that changes when anything in the store's lists does."""
        newest = ("max(seq) FROM results", "max(no) FROM listed", "max(at) FROM incident_states")
        [row] = self._read(f"SELECT {', '.join(f'(SELECT {each})' for each in newest)}")
        return "-".join(str(each or 0) for each in row)


def _numbered(rows: Sequence[tuple[int, Any]], limit: int) -> Page:
    """Make a page of items with their numbers, of which ``rows`` has ``limit`` + 1 if there are more."""
    return Page([item for _, item in rows[:limit]], (0.0, rows[limit - 1][0]) if len(rows) > limit else None)
