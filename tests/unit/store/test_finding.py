"""Lists of the store: whichever index a question is answered by, the answer is that of looking at every row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet, list_pages
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NOT_FAILED
from pandaeval_collector.store.wanted import Wanted

AGENTS, WORDS = ("booker", "library_help"), ("parcel", "Ticket", "50% off", "a_b")
_DAY = 86_400_000


def _traces() -> list[dict[str, Any]]:
    """Sixty traces in eight sessions, some in none."""
    chance = random.Random(5)
    made = []
    for number in range(60):
        score = chance.choice((0.1, 0.4, 0.6, 0.9, 1.0))
        made.append(
            {
                "id": f"{number:032x}",
                "session": None if number % 5 == 0 else f"s{number % 8}",
                "agent": AGENTS[number % 2],
                "at": number * _DAY // 10,
                "in": f"Where is my {chance.choice(WORDS)} number {number}?",
                "score": score,
                "failed": score < 0.5,
                "attributes": (f"service.version={number % 3}", *(["tier=gold = best"] if number % 7 == 0 else [])),
            }
        )
    return made


TRACES = _traces()


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finder]:
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder, "normal")
    changes = WriteSet()
    for each in TRACES:
        id_ = bytes.fromhex(each["id"])
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        changes.session_traces.append(SessionTraceRow(id_, each["session"] or "", each["at"], each["at"], b"{}"))
        facts = orjson.dumps({"id": each["id"], "at": each["at"], "in": each["in"]})
        changes.listed.append(
            ListedRow(id_, each["at"], each["agent"], "shop", "", "", False, facts, each["attributes"])
        )
        body = orjson.dumps({"metric": "coherence", "score": each["score"], "outcome": "scored"})
        result = ResultRow(each["id"][::-1], each["id"], "trace.coherence", 1, body)
        result.success, result.signal = not each["failed"], each["score"]
        changes.results.append(result)
    changes.touched |= {each["session"] for each in TRACES if each["session"]}
    store.commit(changes).result()
    made = Finder(folder)
    yield made
    made.close()
    store.close()


def _first_failed(each: dict[str, Any]) -> bool:
    return each["failed"] and "service.version=1" in each["attributes"]


QUESTIONS: list[tuple[Wanted, Any]] = [
    (Wanted(), lambda each: True),
    (Wanted(agent="booker"), lambda each: each["agent"] == "booker"),
    (Wanted(failed=True), lambda each: each["failed"]),
    (Wanted(failed=False), lambda each: not each["failed"]),
    (Wanted(since_ms=2 * _DAY, until_ms=4 * _DAY), lambda each: 2 * _DAY <= each["at"] < 4 * _DAY),
    (
        Wanted(since_ms=2 * _DAY, agent="library_help", failed=True),
        lambda each: each["at"] >= 2 * _DAY and each["agent"] == "library_help" and each["failed"],
    ),
    (Wanted(session="s3"), lambda each: each["session"] == "s3"),
    (Wanted(text="TICKET number"), lambda each: "Ticket" in each["in"]),
    (Wanted(text="50% off"), lambda each: "50% off" in each["in"]),
    (Wanted(text="a_b", since_ms=_DAY), lambda each: "a_b" in each["in"] and each["at"] >= _DAY),
    (Wanted(text="nobody said this"), lambda each: False),
    (Wanted(metric="trace.coherence", success=False), lambda each: each["failed"]),
    (Wanted(metric="trace.grounding"), lambda each: False),
    (Wanted(agent="nobody"), lambda each: False),
    (Wanted(attribute=("service.version=1",)), lambda each: "service.version=1" in each["attributes"]),
    (
        Wanted(attribute=("service.version=0", "tier=gold = best"), failed=True, since_ms=_DAY),
        lambda each: (
            {"service.version=0", "tier=gold = best"} <= {*each["attributes"]} and each["failed"] and each["at"] >= _DAY
        ),
    ),
    (Wanted(attribute=("service.version=1",), metric="trace.coherence", success=False), _first_failed),
    (Wanted(attribute=("service.version=9",)), lambda each: False),
]


def _pages(ask: Any, wanted: Wanted, **how: Any) -> list[Any]:
    found: list[Any] = []
    after = None
    while True:
        page = ask(wanted, after=after, limit=7, **how)
        found += page.rows
        if page.next is None:
            return found
        after = page.next


@pytest.mark.parametrize("many", [1, 20, 10_000])
@pytest.mark.parametrize(("wanted", "fits"), QUESTIONS)
def test_traces_are_those_that_are_wanted_in_order(
    finder: Finder, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, fits: Any, many: int
) -> None:
    monkeypatch.setattr(list_pages, "_MANY", many)
    expected = [each for each in TRACES if fits(each)]
    worst = sorted(expected, key=lambda each: (not each["failed"], each["score"], each["id"]))
    assert [row.facts["id"] for row in _pages(finder.traces, wanted)] == [each["id"] for each in worst]
    newest = sorted(expected, key=lambda each: -each["at"])
    found = _pages(finder.traces, wanted, worst_first=False)
    assert [row.facts["id"] for row in found] == [each["id"] for each in newest]
    assert [row.session for row in found] == [each["session"] for each in newest]
    counts = finder.counts(wanted)
    assert counts in (None, (len(expected), sum(each["failed"] for each in expected)))
    looked_through = wanted.text is not None or wanted.metric is not None or wanted.session is not None
    assert (counts is None) is (looked_through or wanted.attribute != ())


@pytest.mark.parametrize("many", [1, 10_000])
@pytest.mark.parametrize(("wanted", "fits"), QUESTIONS)
def test_a_session_stands_where_its_worst_wanted_trace_does(
    finder: Finder, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, fits: Any, many: int
) -> None:
    monkeypatch.setattr(list_pages, "_MANY", many)
    seen: dict[str, dict[str, Any]] = {}
    for each in sorted(filter(fits, TRACES), key=lambda each: (not each["failed"], each["score"], each["id"])):
        seen.setdefault(each["session"] or each["id"], each)
    found = _pages(finder.sessions, wanted)
    assert [(unit.id, unit.worst.facts["id"]) for unit in found] == [
        (one["session"], one["id"]) for one in seen.values()
    ]


def test_a_session_tells_how_many_of_its_traces_failed(finder: Finder) -> None:
    of_it = [each for each in TRACES if each["session"] == "s3"]
    found = finder.session("s3", 4)
    assert found is not None
    unit, rows = found
    assert (unit.traces, unit.failed_traces) == (len(of_it), sum(each["failed"] for each in of_it))
    assert [badness < NOT_FAILED for badness in unit.badness] == [each["failed"] for each in of_it]
    assert len(rows) == 4
    assert finder.members("s3") == [each["id"] for each in of_it]
    assert finder.session("nobody's") is None
    assert finder.members("nobody's") == []


def test_names_are_those_that_there_are(finder: Finder) -> None:
    assert finder.names() == {"agent": ["booker", "library_help"], "service": ["shop"], "environment": []}


def test_keys_of_attributes_are_told_in_order(finder: Finder) -> None:
    assert finder.attribute_keys() == ["service.version", "tier"]
    assert len(finder.attribute_keys(1)) == 1
