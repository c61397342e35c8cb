"""Filters of lists: a session has what its traces carry, and a trace is found by the verdicts on its session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted

# Traces: number, session, agent, service, environment, user, version.
TRACES = [
    (1, "two agents", "desk", "shop", "prod", "ann", "1.4"),
    (2, "two agents", "kitchen", "shop", "prod", "ann", "1.5"),
    (3, "passed", "desk", "shop", "test", "bob", "1.5"),
    (4, "wrong", "desk", "till", "prod", "bob", "1.4"),
    (5, "", "desk", "shop", "prod", "ann", "1.5"),
]
BLAMED, LAST = {"two agents": 1}, {"two agents": 2, "passed": 3, "wrong": 4}
FAILED = Wanted(metric="session.correctness", success=False)


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def verdict(session: str, *, passed: bool, label: str) -> ResultRow:
    metadata = {"blame": {"trace_id": trace_id(BLAMED[session]).hex()}} if session in BLAMED else {}
    body = {"level": "session", "metric": "correctness", "outcome": "scored", "success": passed, "label": label}
    body |= {"metadata": metadata, "trace_id": trace_id(LAST[session]).hex(), "evaluator": {"kind": "llm"}}
    signal = 1.0 if passed else 0.0
    return ResultRow(session, session, "session.correctness", 1, orjson.dumps(body), success=passed, signal=signal)


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finder]:
    folder = tmp_path_factory.mktemp("store")
    store, changes = Store(folder, "off"), WriteSet()
    for no, session, agent, service, environment, user, version in TRACES:
        id_ = trace_id(no)
        facts = {"id": id_.hex(), "at": no, "in": f"question {no}", "us": no * 1_000_000, "usd": float(no)}
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        named, pairs = (agent, service, environment, user), (f"service.version={version}",)
        changes.listed.append(ListedRow(id_, no, *named, no == 4, orjson.dumps(facts), pairs))
        changes.session_traces.append(SessionTraceRow(id_, session, no, no, b"{}"))
        changes.touched |= {session} - {""}
    store.commit(changes).result()
    verdicts = [
        verdict("two agents", passed=False, label="false_statement"),
        verdict("passed", passed=True, label="ok"),
    ]
    store.commit(WriteSet(results=[*verdicts, verdict("wrong", passed=False, label="missing_thing")])).result()
    made = Finder(folder)
    yield made
    made.close()
    store.close()


@pytest.mark.parametrize(
    ("given", "sessions"),
    [
        ({}, {"two agents", "wrong"}),
        ({"agent": "desk"}, {"two agents", "wrong"}),
        ({"agent": "kitchen"}, {"two agents"}),
        ({"agent": "nobody"}, set()),
        ({"service": "till"}, {"wrong"}),
        ({"environment": "test"}, set()),
        ({"environment": "prod", "service": "shop"}, {"two agents"}),
        ({"user": "bob"}, {"wrong"}),
        ({"attribute": ("service.version=1.4",)}, {"two agents", "wrong"}),
        ({"attribute": ("service.version=1.5",)}, {"two agents"}),
        ({"agent": "kitchen", "attribute": ("service.version=1.4",)}, set()),
        ({"status": "error"}, {"wrong"}),
        ({"text": "question 2"}, {"two agents"}),
        ({"min_seconds": 4.0}, {"wrong"}),
        ({"min_usd": 2.0, "until_ms": 3}, {"two agents"}),
    ],
)
def test_a_failed_session_is_found_by_what_a_trace_of_it_carries(
    finder: Finder, given: dict[str, Any], sessions: set[str]
) -> None:
    wanted = Wanted(**given, metric="session.correctness", success=False)
    assert {row.id for row in finder.sessions(wanted).rows} == sessions
    assert len(finder.results(wanted).rows) == len(sessions)
    failed, _, _ = finder.failing(Wanted(**given))
    assert len([each for each in failed if each.metric == "session.correctness"]) == len(sessions)


@pytest.mark.parametrize(
    ("wanted", "traces"),
    [
        (FAILED, [1, 4]),  # the trace that the verdict blames, else the last trace
        (Wanted(metric="session.correctness", success=True), [3]),
        (Wanted(label="false_statement"), [1]),
        (Wanted(label="false_statement", agent="kitchen"), []),
        (Wanted(label="missing_thing", success=False), [4]),
        (Wanted(metric="trace.correctness"), []),
    ],
    ids=str,
)
def test_a_trace_is_found_by_a_verdict_on_its_session(finder: Finder, wanted: Wanted, traces: list[int]) -> None:
    assert sorted(row.no for row in finder.traces(wanted).rows) == traces
    assert finder.count(wanted) == len(traces)
