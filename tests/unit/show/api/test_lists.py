"""Order and pages of API lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.base.score import Score
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from support.api import ReadInterfaces
from support.results import result

SIGNALS = {1: 0.9, 2: 0.1, 3: 0.6, 4: 0.3, 5: 0.7}
"""Score by trace number; below 0.5 fails."""
BEGUN_MS = 4_000_000_000_000
"""A time in every tested window; traces 1 to 5 start 1 to 5 ms later."""
THIRD = datetime.fromtimestamp((BEGUN_MS + 3) / 1000, UTC).isoformat()
"""The start of the third trace."""


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _fill(store: Store) -> None:
    for number, signal in SIGNALS.items():
        id_, at = _id(number), BEGUN_MS + number
        facts = {"id": id_.hex(), "at": at, "us": 1, "spans": 1, "llm": 0, "tools": 0}
        said = result(finding=Score(signal), id=f"r{number}", trace_id=id_.hex())
        row = ResultRow(said.id, id_.hex(), "trace.coherence", 1, said.to_json())
        row.success, row.signal = said.success, signal
        changes = WriteSet(
            traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)],
            session_traces=[SessionTraceRow(id_, "s/1" if number < 4 else "", at, at, b"{}")],
            listed=[ListedRow(id_, at, "helper", "shop", "", "", False, orjson.dumps(facts))],
            results=[row],
            touched={"s/1"} if number < 4 else set(),
        )
        store.commit(changes).result()


class Asked:
    def __init__(self, folder: Path) -> None:
        self._store = Store(folder, "off")
        _fill(self._store)
        self._opened: list[ReadInterfaces] = []
        self._folder = folder
        self.client = self.open(self._store)

    def open(self, store: Store | None) -> TestClient:
        work = Work(store, page=PageWork({}))
        self._opened.append(ReadInterfaces(self._folder, work, ()))
        return TestClient(Starlette(routes=self._opened[-1].routes), base_url="http://localhost")

    def get(self, path: str, **parameters: Any) -> Any:
        answer = self.client.get(f"/api/v1{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pages(self, path: str, **parameters: Any) -> list[list[dict[str, Any]]]:
        found, cursor = [], None
        while True:
            page = self.get(path, **parameters, **({} if cursor is None else {"cursor": cursor}))
            found.append(page["items"])
            cursor = page["next"]
            if cursor is None:
                return found

    def close(self) -> None:
        for each in self._opened:
            each.close()
        self._store.close()


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path)
    yield made
    made.close()


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return [int(row["trace_id"], 16) for row in rows]


@pytest.mark.parametrize(
    ("parameters", "order"),
    [
        ({}, [2, 4, 3, 5, 1]),
        ({"order": "worst"}, [2, 4, 3, 5, 1]),
        ({"order": "newest"}, [5, 4, 3, 2, 1]),
        ({"failed": "true"}, [2, 4]),
        ({"session": "s/1"}, [2, 3, 1]),
        ({"since": THIRD, "order": "newest"}, [5, 4, 3]),
        ({"until": THIRD, "order": "newest"}, [2, 1]),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_traces_are_listed_in_order_and_once_over_all_pages(
    asked: Asked, parameters: dict[str, str], order: list[int], limit: int
) -> None:
    found = asked.pages("/traces", limit=limit, **parameters)
    assert [number for page in found for number in numbers(page)] == order
    assert all(len(page) == limit for page in found[:-1])
    assert 0 < len(found[-1]) <= limit


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_sessions_and_single_traces_are_ordered_by_their_worst_trace(asked: Asked, limit: int) -> None:
    rows = [row for page in asked.pages("/sessions", limit=limit) for row in page]
    assert [(row["session_id"], row["traces"], row["failed_traces"]) for row in rows] == [
        ("s/1", 3, 1),
        (None, 1, 1),
        (None, 1, 0),
    ]
    assert numbers([row["worst"] for row in rows]) == [2, 4, 5]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_results_are_listed_newest_first(asked: Asked, limit: int) -> None:
    rows = [row for page in asked.pages("/results", limit=limit) for row in page]
    assert [row["id"] for row in rows] == ["r5", "r4", "r3", "r2", "r1"]


@pytest.mark.parametrize(
    ("path", "most"), [("/traces", 50), ("/sessions", 50), ("/results", 100), ("/page/index", 50), ("/incidents", 50)]
)
def test_the_default_page_size_is_50_or_100(asked: Asked, path: str, most: int) -> None:
    document = asked.get("/openapi.json")
    [limit] = [each for each in document["paths"][path]["get"]["parameters"] if each["name"] == "limit"]
    assert limit["schema"]["default"] == most


def test_a_session_is_open_until_it_is_closed(asked: Asked) -> None:
    found = asked.get("/sessions/s/1")
    assert (found["open"], found["session_id"], numbers(found["members"])) == (True, "s/1", [1, 2, 3])
    asked._store.commit(WriteSet(closed={"s/1"})).result()
    assert asked.get("/sessions/s/1")["open"] is False


def test_without_a_running_collector_no_session_is_open(asked: Asked) -> None:
    asked.client = asked.open(None)
    found = asked.get("/sessions/s/1")
    assert (found["open"], found["failed"]) == (False, True)


def test_an_unknown_session_gives_404(asked: Asked) -> None:
    assert asked.client.get("/api/v1/sessions/nobody's").status_code == 404


def test_a_trace_without_stored_spans_is_shown_with_its_results(asked: Asked) -> None:
    found = asked.get(f"/traces/{_id(4).hex()}")
    assert (numbers([found]), found["failed"], found["worst"]) == ([4], True, 0.3)
    assert [each["id"] for each in found["results"]] == ["r4"]
    assert asked.client.get(f"/api/v1/traces/{_id(9).hex()}").status_code == 404


@pytest.mark.parametrize("window", ["1h", "24h", "7d", "all"])
def test_the_page_applies_since_inside_its_window(asked: Asked, window: str) -> None:
    for since, traces, failed in ((None, 5, 2), (THIRD, 3, 1)):
        given = {} if since is None else {"since": since}
        found = asked.get("/page/index", window=window, of="traces", **given)
        assert (found["traces"], found["failed"], found["newest"]) == (traces, failed, 5)


def test_a_conversation_has_the_traces_of_its_session_in_order(asked: Asked) -> None:
    found = asked.get("/page/conversation", id="s/1")
    assert [int(trace["id"], 16) for trace in found["traces"]] == [1, 2, 3]
    assert found["next"] is None
    assert asked.get("/page/conversation", id="s/1", start=2) == {"traces": [{"id": _id(3).hex()}], "next": None}
    assert asked.client.get("/api/v1/page/conversation", params={"id": "s/2"}).status_code == 404
