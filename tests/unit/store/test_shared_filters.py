"""Filters across sessions and traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.failing import read_failures
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.rates import read_rates

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

GROUPS = {"two agents": "0123456789ab", "wrong": "ba9876543210"}


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def verdict(session: str, *, passed: bool, label: str) -> ResultRow:
    metadata: dict[str, Any] = {"blame": {"trace_id": trace_id(BLAMED[session]).hex()}} if session in BLAMED else {}
    if not passed:
        metadata["failure_group"] = {"id": GROUPS[session]}
    body = {"level": "session", "metric": "correctness", "outcome": "scored", "success": passed, "label": label}
    body |= {"metadata": metadata, "trace_id": trace_id(LAST[session]).hex(), "evaluator": {"kind": "llm"}}
    signal, verdict_name = (1.0, "passed") if passed else (0.0, "failed")
    return ResultRow(
        session,
        session,
        "session.correctness",
        1,
        orjson.dumps(body),
        success=passed,
        signal=signal,
        verdict=verdict_name,
    )


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
        for turn, score in enumerate((0.0, 1.0)):
            verdict_name = "passed" if score else "failed"
            body = orjson.dumps({"metric": "helpfulness"})
            unit = f"{id_.hex()}:{turn}"
            changes.results.append(
                ResultRow(unit, unit, "turn.helpfulness", 1, body, success=score > 0, verdict=verdict_name)
            )
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
def test_a_failed_session_is_found_if_one_of_its_traces_matches_all_filters(
    finder: Finder, given: dict[str, Any], sessions: set[str]
) -> None:
    wanted = Wanted(**given, metric="session.correctness", success=False)
    assert {row.id for row in finder.sessions(wanted).rows} == sessions
    assert len(finder.results(wanted).rows) == len(sessions)
    failed, _, _ = read_failures(finder, Wanted(**given))
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
        (Wanted(incident="ba9876543210"), [4]),
        (Wanted(incident="ba9876543210,0123456789ab", agent="desk"), [1, 4]),
        (Wanted(incident="ffffffffffff"), []),
    ],
    ids=str,
)
def test_a_trace_is_found_by_a_verdict_on_its_session(finder: Finder, wanted: Wanted, traces: list[int]) -> None:
    assert sorted(row.no for row in finder.traces(wanted).rows) == traces
    assert finder.count(wanted) == len(traces)


def counted(finder: Finder, wanted: Wanted, metric: str) -> dict[str | None, dict[str, int]]:
    found: dict[str | None, dict[str, int]] = {}
    for key, agent, verdict, times in read_rates(finder, wanted):
        if key == metric:
            found.setdefault(agent, {})[verdict] = times
    return found


def test_rates_count_a_session_per_agent_and_once_in_the_total(finder: Finder) -> None:
    found = counted(finder, Wanted(), "session.correctness")
    assert found == {
        None: {"failed": 2, "passed": 1},
        "desk": {"failed": 2, "passed": 1},
        "kitchen": {"failed": 1},
    }


@pytest.mark.parametrize("given", [{}, {"service": "shop"}, {"since_ms": 3}, {"attribute": ("service.version=1.5",)}])
def test_a_list_of_failures_has_as_many_rows_as_the_rate_counts(finder: Finder, given: dict[str, Any]) -> None:
    for metric, find in (("session.correctness", finder.sessions), ("turn.helpfulness", finder.traces)):
        for agent, verdicts in counted(finder, Wanted(**given), metric).items():
            listed = find(Wanted(**given | {"agent": agent, "metric": metric, "success": False}))
            assert len(listed.rows) == verdicts.get("failed", 0), (metric, agent)


def test_a_trace_counts_once_per_turn_metric_with_its_worst_verdict(finder: Finder) -> None:
    assert counted(finder, Wanted(), "turn.helpfulness") == {"desk": {"failed": 4}, "kitchen": {"failed": 1}}


def test_result_filters_select_the_results_that_rates_count(finder: Finder) -> None:
    assert read_rates(finder, Wanted(label="missing_thing")) == [
        ("session.correctness", None, "failed", 1),
        ("session.correctness", "desk", "failed", 1),
    ]
    assert {key for key, *_ in read_rates(finder, Wanted(metric="turn.helpfulness"))} == {"turn.helpfulness"}
