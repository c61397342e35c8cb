"""Finds traces, sessions and results for people: a page at a time, in reads that give up after a time limit, so that no
question, however it is put, holds up the line."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson

from pandaeval_collector.store import found, numbers, people
from pandaeval_collector.store.chunks import Part
from pandaeval_collector.store.connection import Connections
from pandaeval_collector.store.failures import FailureGroupRow, groups
from pandaeval_collector.store.found import (
    COLUMNS,
    OF_SESSION,
    AgentBucket,
    CounterSeries,
    FailedResult,
    Listed,
    ListedSession,
    Page,
    Position,
    listed_of,
    results_about,
    sessions_of,
)
from pandaeval_collector.store.kept import contents
from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_collector.store.series import attributes_of
from pandaeval_collector.store.wanted import Wanted, chosen_by_index, conditions, result_conditions

_NAMES_AGE = 50.0
"""Names are read again after this multiple of the time that reading them took: 2 % of a reader's time at most."""

MOST_FAILED = 20_000
"""Most failed runs that are read, the newest."""
MOST_MEASURED = 5_000
"""Most runs of which latencies, tokens and costs are read, the newest."""
_BODY = "CAST(r.body AS TEXT)"
_FAILED_RESULTS = f"""
    SELECT json_group_array(json_array(l.no, l.at,
        CASE l.agent WHEN '' THEN json_extract({_BODY}, '$.agent') ELSE l.agent END, r.metric, r.seq,
        json_extract({_BODY}, '$.label'), json_extract({_BODY}, '$.metadata.failure_group.id'),
        json_extract({_BODY}, '$.metadata.failure_group.severity'), ''))
    FROM listed AS l JOIN results AS r ON r.about = l.no
    WHERE l.no IN ({{failed}}) AND r.success = 0
        AND (l.no > 0 OR json_extract({_BODY}, '$.evaluator.kind') != 'math')
        AND r.seq = (SELECT max(seq) FROM results AS n
                     WHERE n.about = r.about AND n.metric = r.metric AND n.unit = r.unit)"""  # noqa: S608
_BROKEN_RUNS = """
    SELECT json_group_array(json_array(no, at, agent, '', 0, 'run failed', '', 'high',
        json_extract(CAST(facts AS TEXT), '$.error'))) FROM listed AS b
    WHERE no IN ({failed}) AND broken AND NOT EXISTS (
        SELECT 1 FROM results AS r WHERE r.about = b.no AND r.success = 0)"""


class Finder:
    """Reads one store's file. Safe from any thread; each thread that reads has a connection. All of its queries raise
    :class:`pandaeval_collector.store.connection.TooSlowError` where they take too long."""

    def __init__(self, path: Path, limit_s: float = 5.0) -> None:
        """``path``: the data directory. ``limit_s``: how long a query may take."""
        self._reads = Connections(path, limit_s)
        self._names: tuple[float, dict[str, list[str]]] | None = None

    def close(self) -> None:
        """Closes the connections of all threads."""
        self._reads.close()

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection, for reads without the time limit."""
        return self._reads.own()

    def traces(
        self, wanted: Wanted, *, worst_first: bool = True, after: Position | None = None, limit: int = 50
    ) -> Page:
        """Returns a page of agents' traces, worst first or newest first, as :class:`Listed` with their results."""
        where, values = conditions(wanted)
        where.append("+no > 0")
        with self._reads.snapshot() as reader:
            find = found.worst_first if worst_first else found.newest_first
            rows = find(reader, wanted, where, values, after, limit + 1)
            shown = listed_of(reader, [row[:-1] for row in rows[:limit]])
        return Page(shown, found.end(rows, limit, "badness" if worst_first else "at"))

    def sessions(self, wanted: Wanted, *, after: Position | None = None, limit: int = 50) -> Page:
        """Returns a page of sessions and traces without one, as :class:`ListedSession`, by the worst of their rows."""
        where, values = conditions(wanted)
        # A session stands where its worst row that is wanted does.
        others, more = conditions(wanted, "o")
        others += ["o.session = l.session", "o.session > 0", "(o.badness, o.no) < (l.badness, l.no)"]
        first = f"(session = 0 OR NOT EXISTS (SELECT 1 FROM listed AS o WHERE {' AND '.join(others)}))"  # noqa: S608
        if wanted.text is not None:  # other rows are only read for a row with the text
            first, more = f"CASE WHEN {' AND '.join(where)} THEN {first} ELSE 0 END", [*values, *more]
        where.append(first)
        values += more
        with self._reads.snapshot() as reader:
            rows = found.worst_first(reader, wanted, where, values, after, limit + 1)
            shown = sessions_of(reader, [row[:-1] for row in rows[:limit]])
        return Page(shown, found.end(rows, limit, "badness"))

    def session(self, session_id: str, most: int = 2000) -> tuple[ListedSession, list[Listed]] | None:
        """Returns a session with its ``most`` worst traces, ordered by start; ``None`` for one that is not there."""
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
        """Returns the ids, in hex, of a session's first ``most`` traces by start."""
        with self._reads.snapshot() as reader:
            rows = reader.execute(
                """SELECT trace_id FROM listed JOIN traces USING (no) WHERE listed.no > 0 AND listed.session > 0
                   AND listed.session = (SELECT no FROM sessions WHERE session_id = ?)
                   ORDER BY at, listed.no LIMIT ?""",
                (session_id, most),
            )
            return [trace_id.hex() for (trace_id,) in rows]

    def counts(self, wanted: Wanted) -> tuple[int, int] | None:
        """Counts the wanted traces, and those of them in which something failed; ``None`` where all that is stored had
        to be read for that."""
        if not chosen_by_index(replace(wanted, since_ms=0)):
            return None
        where, values = conditions(wanted)
        with self._reads.snapshot() as reader:
            traces, failed = reader.execute(
                f"SELECT count(*), total(badness < ?) FROM listed AS l WHERE {' AND '.join([*where, '+no > 0'])}",  # noqa: S608
                (NOT_FAILED, *values),
            ).fetchone()
            return traces, int(failed)

    def count(self, wanted: Wanted) -> int:
        """Counts the agents' traces that are wanted."""
        where, values = conditions(wanted)
        with self._reads.snapshot() as reader:
            query = f"SELECT count(*) FROM listed AS l WHERE {' AND '.join([*where, 'no > 0'])}"  # noqa: S608
            return int(reader.execute(query, values).fetchone()[0])

    def of_sessions(self, session_ids: Sequence[str]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """Returns the newest results about sessions themselves as JSON objects, by session id and metric key."""
        with self._reads.snapshot() as reader:
            known = numbers.of_sessions(reader, session_ids)
            results = results_about(reader, [-no for no in known.values()])
        return {session_id: results.get(-no, {}) for session_id, no in known.items()}

    def trace(self, trace_id: bytes) -> Listed | None:
        """Returns the row of a trace; ``None`` where it is not listed."""
        with self._reads.snapshot() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
            rows = reader.execute(
                f"SELECT {COLUMNS} FROM listed WHERE no = ?",  # noqa: S608
                (no,),
            ).fetchall()
            return listed_of(reader, rows)[0] if rows else None

    def traces_from(self, prefix: str, most: int = 2) -> list[str]:
        """Returns at most ``most`` ids of listed traces, in hex, that begin with ``prefix`` (32 hex digits at most)."""
        ends = [bytes.fromhex(prefix.ljust(32, digit)) for digit in "0f"]
        with self._reads.snapshot() as reader:
            rows = reader.execute(
                """SELECT trace_id FROM traces JOIN listed USING (no) WHERE traces.no >> 13 IN
                   (SELECT value FROM json_each(?)) AND trace_id BETWEEN ? AND ? LIMIT ?""",
                (numbers.blocks(reader), *ends, most),
            ).fetchall()
        return [trace_id.hex() for (trace_id,) in rows]

    def sessions_from(self, prefix: str, most: int = 2) -> list[str]:
        """Returns at most ``most`` ids of sessions that begin with ``prefix``."""
        with self._reads.snapshot() as reader:
            query = "SELECT session_id FROM sessions WHERE session_id >= ? AND session_id < ? LIMIT ?"
            return [id_ for (id_,) in reader.execute(query, (prefix, prefix + chr(0x10FFFF), most))]

    def is_named(self, column: Literal["agent", "service", "environment", "user"], name: str) -> bool:
        """Whether a listed trace is of this agent, service, environment or user."""
        with self._reads.snapshot() as reader:
            query = f"SELECT 1 FROM listed WHERE {column} = ? AND +no > 0 LIMIT 1"  # noqa: S608
            return reader.execute(query, (name,)).fetchone() is not None

    def attribute_keys(self, most: int = 2000) -> list[str]:
        """Returns at most ``most`` keys of attributes by which traces are found."""
        with self._reads.snapshot() as reader:
            query = "SELECT DISTINCT substr(pair, 1, instr(pair, '=') - 1) FROM attribute_pairs LIMIT ?"
            return sorted(key for (key,) in reader.execute(query, (most,)))

    def contents(self, trace_id: bytes) -> list[Part]:
        """Returns the stored requests of a trace, oldest first; none where its spans are not kept (any more)."""
        with self._reads.snapshot() as reader:
            no = numbers.of_traces(reader, [trace_id]).get(trace_id)
            return [] if no is None else contents(reader, no)

    def results(self, wanted: Wanted, *, before: int | None = None, limit: int = 100) -> Page:
        """Returns a page of results as JSON objects, newest first, all revisions. ``before``: where the last one
        ended."""
        where, values = result_conditions(wanted, "r")
        if before is not None:
            where.append("r.seq < ?")
            values.append(before)
        of_units, more = conditions(wanted.of_unit(), "l")
        if of_units:
            where.append(f"EXISTS (SELECT 1 FROM listed AS l WHERE l.no = r.about AND {' AND '.join(of_units)})")  # noqa: S608
            values += more
        with self._reads.snapshot() as reader:
            rows = reader.execute(
                f"""SELECT r.body, r.seq FROM results AS r WHERE {" AND ".join(where) or "1"}
                    ORDER BY r.seq DESC LIMIT ?""",  # noqa: S608
                (*values, limit + 1),
            ).fetchall()
        found = [orjson.loads(body) for body, _ in rows[:limit]]
        return Page(found, (0.0, rows[limit - 1][1]) if len(rows) > limit else None)

    def labels(self, units: Sequence[str], metric: str | None, *, before: int | None = None, limit: int = 100) -> Page:
        """Returns a page of people's verdicts, newest first, about any of ``units`` (all, if empty) and one metric (or
        all). ``before``: the number at which the last page ended."""
        with self._reads.snapshot() as reader:
            rows = people.page(reader, units, metric, before, limit + 1)
        return Page([label for _, label in rows[:limit]], (0.0, rows[limit - 1][0]) if len(rows) > limit else None)

    def failing(self, wanted: Wanted) -> tuple[list[FailedResult], dict[str, FailureGroupRow]]:
        """Returns what failed of the wanted runs and sessions, oldest first, and the groups of failures by id. Left
        out is a formula over a session: it sums up what failed in the session's runs."""
        where, values = conditions(wanted)
        failed = f"""SELECT no FROM listed AS l WHERE {" AND ".join([*where, f"badness < {NOT_FAILED:g}"])}
                     ORDER BY at DESC LIMIT {MOST_FAILED}"""  # noqa: S608
        with self._reads.snapshot() as reader:
            # All in one row: after each row the interpreter is waited for, which the line may hold for milliseconds.
            (scored,) = reader.execute(_FAILED_RESULTS.format(failed=failed), values).fetchone()
            (broken,) = reader.execute(_BROKEN_RUNS.format(failed=failed), values).fetchone()
            known = {row.id: row for row in groups(reader)}
        rows = (
            FailedResult(no, at, agent or "", metric, seq, *(text or "" for text in texts))
            for no, at, agent, metric, seq, *texts in (*orjson.loads(scored), *orjson.loads(broken))
        )
        return sorted(rows, key=lambda row: (row.at, row.no, row.seq)), known

    def over_time(self, wanted: Wanted, since: int, step: int) -> list[AgentBucket]:
        """Counts the wanted runs by bucket of ``step`` milliseconds from ``since`` on, and by agent."""
        where, values = conditions(wanted)
        with self._reads.snapshot() as reader:
            rows = reader.execute(
                f"""SELECT (at - ?) / ? AS bucket, agent, count(*), total(badness < {NOT_FAILED:g}) FROM listed AS l
                    WHERE {" AND ".join([*where, "+no > 0"])} GROUP BY bucket, agent""",  # noqa: S608
                (since, step, *values),
            )
            return [AgentBucket(bucket, agent, runs, int(failed)) for bucket, agent, runs, failed in rows]

    def oldest(self, wanted: Wanted) -> int | None:
        """Returns when the first wanted run began, Unix milliseconds; ``None`` where there is none."""
        where, values = conditions(wanted)
        with self._reads.snapshot() as reader:
            query = f"SELECT min(at) FROM listed AS l WHERE {' AND '.join([*where, '+no > 0'])}"  # noqa: S608
            at: int | None = reader.execute(query, values).fetchone()[0]
        return at

    def measured(self, wanted: Wanted) -> dict[str, list[tuple[int, int, float | None]]]:
        """Returns (microseconds, tokens, US dollars) of the newest wanted runs, by agent."""
        where, values = conditions(wanted)
        with self._reads.snapshot() as reader:
            (read,) = reader.execute(
                f"""SELECT json_group_array(json_array(agent, json_extract(f, '$.us'),
                        json_extract(f, '$.tokens[0]') + json_extract(f, '$.tokens[1]'), json_extract(f, '$.usd')))
                    FROM (SELECT agent, CAST(facts AS TEXT) AS f FROM listed AS l
                          WHERE {" AND ".join([*where, "+no > 0"])} ORDER BY at DESC LIMIT {MOST_MEASURED})""",  # noqa: S608
                values,
            ).fetchone()
        of_agents: dict[str, list[tuple[int, int, float | None]]] = {}
        for agent, us, tokens, usd in orjson.loads(read):
            of_agents.setdefault(agent, []).append((us or 0, tokens or 0, usd))
        return of_agents

    def bodies(self, seqs: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Returns the JSON objects of results by their numbers."""
        query = "SELECT seq, body FROM results WHERE seq IN (SELECT value FROM json_each(?))"
        with self._reads.snapshot() as reader:
            return {seq: orjson.loads(body) for seq, body in reader.execute(query, (numbers.json_list(seqs),))}

    def failure_groups(self) -> list[FailureGroupRow]:
        """Returns the groups of failures, the one with the newest failure first."""
        with self._reads.snapshot() as reader:
            return groups(reader)

    def names(self) -> dict[str, list[str]]:
        """Agents, services and environments that there are, to choose from: at most 200 of each. Those of a large store
        may be some seconds old."""
        known, begun = self._names, time.monotonic()
        if known is not None and begun < known[0]:
            return known[1]
        with self._reads.snapshot() as reader:
            rows = reader.execute("SELECT DISTINCT agent, service, environment FROM listed WHERE +no > 0 LIMIT 20000")
            values = [*zip(*rows.fetchall(), strict=True)] or [()] * 3
        names = {
            kind: sorted({*some} - {""})[:200]
            for kind, some in zip(("agent", "service", "environment"), values, strict=True)
        }
        ended = time.monotonic()
        self._names = ended + _NAMES_AGE * (ended - begun), names
        return names

    def counters(self, name: str) -> list[CounterSeries]:
        """All series of a counter, at most 20,000."""
        with self._reads.snapshot() as reader:
            rows = reader.execute("SELECT attributes, total FROM series WHERE name = ? LIMIT 20000", (name,)).fetchall()
        return [CounterSeries(dict(attributes_of(attributes)), int(total)) for attributes, total in rows]

    def newest(self) -> int:
        """Returns the number of the newest result; 0 where there is none."""
        with self._reads.snapshot() as reader:
            (seq,) = reader.execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()
            return int(seq)

    def change(self) -> str:
        """A text that changes when anything in the store's lists does."""
        with self._reads.snapshot() as reader:
            (seq,) = reader.execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()
            (no,) = reader.execute("SELECT coalesce(max(no), 0) FROM listed").fetchone()
        return f"{seq}-{no}"
