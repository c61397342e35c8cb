"""Abbreviated names and IDs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.base.score import Score
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import (
    DecidedTrace,
    FailureGroupRow,
    ListedRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
)
from support.api import ReadInterfaces
from support.results import result

FIRST, SECOND, THIRD = "aaaa1111" * 4, "aaaa2222" * 4, "bbbb3333" * 4


def _row(number: int, trace_id: str, session: str, broken: bool) -> WriteSet:
    id_ = bytes.fromhex(trace_id)
    facts = {"id": trace_id, "at": number, "us": 1, "spans": 1, "llm": 0, "tools": 0}
    said = result(finding=Score(0.1), id=f"r{number}", trace_id=trace_id)
    row = ResultRow(said.id, trace_id, "trace.tool_loop", 1, said.to_json())
    row.success, row.signal = said.success, 0.1
    listed = ListedRow(id_, number, "order_desk", "shop", "", "", broken, orjson.dumps(facts), ("tier=gold",))
    return WriteSet(
        traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)],
        session_traces=[SessionTraceRow(id_, session, number, number, b"{}")],
        listed=[listed],
        results=[row],
        touched={session},
    )


GROUP = FailureGroupRow("abc123", "trace.response", "error", "t", "d", "high", "gone_agent", "s", "x", 1, 1.0, 1.0)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("store")
    store = Store(folder, "off")
    for number, (trace_id, session) in enumerate(((FIRST, "chat-1"), (SECOND, "chat-10"), (THIRD, "talk/7")), 1):
        store.commit(_row(number, trace_id, session, number == 1)).result()
    store.commit(WriteSet(failures=[GROUP])).result()
    lookouts = ReadInterfaces(folder, Work(page=PageWork({})))
    yield TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    lookouts.close()
    store.close()


def asked(client: TestClient, path: str, **parameters: Any) -> httpx.Response:
    return client.get(f"/api/v1{path}", params=parameters)


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["trace_id"] for each in answer.json()["items"]]


@pytest.mark.parametrize("path", ["/traces", "/sessions", "/results", "/page/index"])
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("agent", "order-desk", "agent: there is no order-desk; did you mean order_desk?"),
        ("agent", "zzz", "agent: there is no zzz; there are order_desk"),
        ("service", "shopp", "service: there is no shopp; did you mean shop?"),
        ("metric", "tool_lop", "metric: tool_lop: unknown metric; did you mean tool_loop?"),
        (
            "metric",
            "correctness",
            "metric: correctness is the name of several metrics; write session.correctness or trace.correctness",
        ),
        ("attribute", "teir=gold", "attribute: there is no teir; did you mean tier?"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(
    client: TestClient, path: str, name: str, value: str, told: str
) -> None:
    answer = asked(client, path, **{name: value})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(told)


def test_metrics_can_be_given_without_their_level(client: TestClient) -> None:
    assert len(ids(asked(client, "/traces", metric="tool_loop", agent="order_desk", attribute="tier=gold"))) == 3
    assert len(asked(client, "/results", metric="tool_loop").json()["items"]) == 3
    assert ids(asked(client, "/traces", metric="confidence")) == [], "a known metric without results"
    assert ids(asked(client, "/traces", attribute="tier=silver")) == [], "values are not checked"


def test_traces_are_filtered_by_status(client: TestClient) -> None:
    assert ids(asked(client, "/traces", status="error")) == [FIRST]
    assert sorted(ids(asked(client, "/traces", status="ok"))) == [SECOND, THIRD]
    assert asked(client, "/traces", status="bad").status_code == 422


@pytest.mark.parametrize("path", ["/traces/", "/page/traces/"])
def test_a_unique_prefix_of_a_trace_id_is_accepted(client: TestClient, path: str) -> None:
    assert asked(client, path + "bbbb").status_code == 200
    assert asked(client, path + "AAAA1").status_code == 200, "odd number of digits, upper case"
    assert asked(client, path + FIRST).status_code == 200
    several = asked(client, path + "aaaa")
    assert (several.status_code, FIRST in several.text, SECOND in several.text) == (409, True, True)
    assert asked(client, path + "cccc").status_code == 404
    assert asked(client, path + "order").status_code == 400


@pytest.mark.parametrize(("written", "id_"), [("chat-1", "chat-1"), ("chat-10", "chat-10"), ("talk", "talk/7")])
def test_a_session_is_found_by_a_unique_prefix_and_an_exact_id_wins(client: TestClient, written: str, id_: str) -> None:
    assert asked(client, f"/sessions/{written}").json()["session_id"] == id_
    assert {each["session_id"] for each in asked(client, "/traces", session=written).json()["items"]} == {id_}


def test_an_ambiguous_session_prefix_is_an_error_that_lists_the_ids(client: TestClient) -> None:
    answer = asked(client, "/sessions/chat")
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "chat is the prefix of several IDs (chat-1, chat-10): write a longer prefix",
    )
    assert asked(client, "/sessions/nobody").status_code == 404


def test_incidents_are_filtered_by_time_and_reject_unknown_agents_and_ids(client: TestClient) -> None:
    whole = asked(client, "/incidents", since="1970-01-01T00:00:00Z", until="1970-01-01T03:00:00Z").json()
    assert (sum(whole["runs"]), sum(whole["failed"]), whole["since"]) == (3, 3, 0)
    assert asked(client, "/incidents", agent="order-desk").status_code == 422
    assert asked(client, "/incidents/abd").status_code == 404
