"""Groups of failures over the API: which are asked for, in what order, and all that is known of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import FailureGroupRow, Store, WriteSet
from support.api import Lookouts

EXAMPLES = tuple(
    {
        "result": f"r{at}",
        "trace_id": "ab" * 16,
        "span_id": "cd" * 8,
        "session_id": None,
        "turn": at,
        "reason": "no answer",
        "at": 1_700_000_000.25 + at,
    }
    for at in range(2)
)


def group(id_: str, severity: str, agent: str, last_at: float) -> FailureGroupRow:
    words = {"metric": "trace.response", "label": "error", "title": f"Title {id_}", "description": "What happens"}
    times = {"count": 3, "first_at": 1_600_000_000.5, "last_at": last_at}
    return FailureGroupRow(
        id_, severity=severity, agent=agent, service="shop", text="t", examples=EXAMPLES, **words, **times
    )


GROUPS = [
    group("g-low", "low", "booker", 1_700_000_001.0),
    group("g-medium", "medium", "helper", 1_700_000_002.0),
    group("g-high", "high", "helper", 1_700_000_003.0),
    group("g-critical", "critical", "booker", 1_700_000_004.5),
]


Ask = Callable[..., TestClient]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Ask]:
    store = Store(tmp_path, "off")
    store.commit(WriteSet(failures=GROUPS)).result()
    opened: list[Lookouts] = []

    def make(page: PageWork | None = None, more: Sequence[FailureGroupRow] = ()) -> TestClient:
        store.commit(WriteSet(failures=[*more])).result()
        opened.append(Lookouts(tmp_path, Work(page=page)))
        return TestClient(Starlette(routes=opened[-1].routes), base_url="http://localhost")

    yield make
    for each in opened:
        each.close()
    store.close()


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({}, ["g-critical", "g-high", "g-medium", "g-low"]),
        ({"severity": "low"}, ["g-critical", "g-high", "g-medium", "g-low"]),
        ({"severity": "high"}, ["g-critical", "g-high"]),
        ({"severity": "critical"}, ["g-critical"]),
        ({"agent": "helper"}, ["g-high", "g-medium"]),
        ({"agent": "helper", "severity": "high"}, ["g-high"]),
        ({"limit": "1"}, ["g-critical"]),
        ({"limit": "3"}, ["g-critical", "g-high", "g-medium"]),
        ({"agent": "booker", "limit": "1"}, ["g-critical"]),
    ],
)
def test_groups_come_newest_first_and_those_that_are_asked_for(
    client: Ask, asked: dict[str, str], ids: list[str]
) -> None:
    found = client().get("/api/v1/failures", params=asked).json()["items"]
    assert [each["id"] for each in found] == ids


def test_claims_of_success_come_first_then_the_gravest_then_the_newest(client: Ask) -> None:
    lie = replace(group("g-lie", "critical", "booker", 1_600_000_000.0), label="false_success")
    asked = client(more=[lie, group("g-new", "high", "booker", 1_800_000_000.0)])
    found = asked.get("/api/v1/failures").json()["items"]
    assert [each["id"] for each in found] == ["g-lie", "g-critical", "g-new", "g-high", "g-medium", "g-low"]


@pytest.mark.parametrize(("page", "address"), [(None, None), (PageWork({}, 1.0), "/#/failures?group=g-critical")])
def test_a_group_tells_all_that_is_known_of_it(client: Ask, page: PageWork | None, address: str | None) -> None:
    asked = client(page)
    alone: dict[str, Any] = asked.get("/api/v1/failures/g-critical").json()
    assert alone == asked.get("/api/v1/failures").json()["items"][0]
    assert alone == {
        "id": "g-critical",
        "metric": "trace.response",
        "label": "error",
        "title": "Title g-critical",
        "description": "What happens",
        "severity": "critical",
        "tool": "",
        "agent": "booker",
        "service": "shop",
        "occurrences": 3,
        "first_at": 1_600_000_000_500,
        "last_at": 1_700_000_004_500,
        "page": address,
        "examples": [{**each, "at": int(each["at"] * 1000)} for each in reversed(EXAMPLES)],
    }


def test_a_group_that_is_not_there_is_told_by_the_beginning_of_its_name(client: Ask) -> None:
    answer = client().get(f"/api/v1/failures/{'x' * 50}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"there is no group of failures {'x' * 40}")
    assert client().get("/api/v1/failures", params={"severity": "grave"}).status_code == 422
