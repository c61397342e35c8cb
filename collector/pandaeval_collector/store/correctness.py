"""Reads the current verdicts of ``correctness``."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from pandaeval_collector.store.failing import MOST_FAILED
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import BODY

_CORRECTNESS = f"""
    SELECT json_group_array(json_array(l.no, r.metric, json_extract({BODY}, '$.agent'), r.success,
        iif(r.success IS NULL, json_extract({BODY}, '$.metadata.open_question'), NULL),
        EXISTS (SELECT 1 FROM people_labels AS p WHERE p.unit = r.unit AND p.metric = r.metric AND passed IS NOT NULL),
        json_extract({BODY}, '$.trace_id'), json_extract({BODY}, '$.session_id')))
    FROM (SELECT no FROM listed ORDER BY at DESC LIMIT {MOST_FAILED}) AS l JOIN results AS r ON r.about = l.no
    WHERE r.metric IN ('trace.correctness', 'session.correctness')
        AND r.verdict IS NOT NULL"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class StandingVerdict:
    """A current verdict of ``correctness``.

    ``no``: of the trace, or below zero of the session. ``question``: to the owner. ``labelled``: also by people.
    """

    no: int
    metric: str
    agent: str
    passed: bool | None
    question: str
    labelled: bool
    trace_id: str
    session_id: str | None


def read_verdicts(finder: Finder) -> list[StandingVerdict]:
    """Return the verdicts of ``correctness`` on the newest runs and sessions, newest first."""
    [(read,)] = finder.read(_CORRECTNESS)
    return [
        StandingVerdict(
            no, metric, agent or "", None if passed is None else bool(passed), question or "", bool(known), *ids
        )
        for no, metric, agent, passed, question, known, *ids in orjson.loads(read)
    ]
