"""Answers about traces whose stored spans cannot be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.base.score import Score
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import Chunk, DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from support.api import ReadInterfaces
from support.results import result

MALFORMED, CHANGED = bytes([1] * 16), bytes([2] * 16)
"""A trace with a valid checksum and invalid protobuf, and a trace with a wrong checksum."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    store = Store(folder, "off")
    for number, trace_id in enumerate((MALFORMED, CHANGED), 1):
        store.append([Chunk(number, trace_id, False, 1, 1, b"\x0a\xff no request")]).result()
        said = result(finding=Score(0.1), id=f"r{number}", trace_id=trace_id.hex())
        facts = b'{"id": "%s", "at": %d, "us": 1, "spans": 1, "llm": 0, "tools": 0}' % (trace_id.hex().encode(), number)
        changes = WriteSet(
            traces=[DecidedTrace(trace_id, 1, True, "d", frozenset(), [number], 0)],
            session_traces=[SessionTraceRow(trace_id, "s", number, number, b"{}")],
            listed=[ListedRow(trace_id, number, "helper", "shop", "", "", False, facts)],
            results=[ResultRow(said.id, trace_id.hex(), "trace.coherence", 1, said.to_json())],
            touched={"s"},
        )
        store.commit(changes).result()
    store.close()
    with sqlite3.connect(folder / "pandaeval.db") as connection:
        connection.execute("UPDATE chunks SET data = x'0a00' WHERE trace_id = ?", (CHANGED,))
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    lookouts = ReadInterfaces(folder, Work(page=PageWork({})))
    yield TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    lookouts.close()


@pytest.mark.parametrize("trace_id", [MALFORMED.hex(), CHANGED.hex()])
def test_a_damaged_trace_is_shown_without_its_spans(client: TestClient, trace_id: str) -> None:
    shown = client.get(f"/api/v1/traces/{trace_id}")
    assert (shown.status_code, shown.json()["understood"], len(shown.json()["results"])) == (200, None, 1), shown.text
    page = client.get(f"/api/v1/page/traces/{trace_id}")
    assert (page.status_code, "spans" in page.json()["detail"]) == (200, False), page.text


def test_a_session_with_damaged_traces_is_shown(client: TestClient) -> None:
    found = client.get("/api/v1/page/conversation", params={"id": "s"})
    assert found.status_code == 200, found.text
    assert [each["id"] for each in found.json()["traces"]] == [MALFORMED.hex(), CHANGED.hex()]


def test_exports_leave_out_spans_with_a_wrong_checksum(client: TestClient) -> None:
    assert client.get(f"/api/v1/spans/{CHANGED.hex()}").status_code == 404
    assert client.get("/api/v1/export", params={"format": "otlp"}).status_code == 200
