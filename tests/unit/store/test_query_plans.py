"""Indexes and orders of list queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, Store, WriteSet, listed_pages
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NOT_FAILED, Wanted, conditions
from pandaeval_collector.store.listed_pages import Position

WORST = [(0.25, 2), (0.5, 3), (0.5, 5), (NOT_FAILED + 0.5, 1), (NOT_FAILED + 0.75, 4)]
"""Positions of five traces in list order."""
NEWEST = [(50, 5), (40, 4), (30, 3), (20, 2), (10, 1)]
BY_TIME, BY_FAILURES = "INDEXED BY listed_by_time", "INDEXED BY listed_failures"


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finder]:
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder, "off")
    changes = WriteSet()
    for badness, number in sorted(WORST, key=lambda each: each[1]):
        id_ = number.to_bytes(16, "big")
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        changes.listed.append(ListedRow(id_, 10 * number, "a", "s", "", "", False, b"{}"))
        row = ResultRow(f"r{number}", id_.hex(), "trace.x", 1, b"{}")
        row.success, row.signal = badness > NOT_FAILED, badness % NOT_FAILED
        changes.results.append(row)
    store.commit(changes).result()
    made = Finder(folder)
    yield made
    made.close()
    store.close()


@pytest.mark.parametrize(
    ("wanted", "few", "many"),
    [
        (Wanted(), "", ""),
        (Wanted(text="x"), "", ""),
        (Wanted(agent="a", service="s"), BY_TIME, BY_FAILURES),
        (Wanted(agent="b"), BY_TIME, BY_TIME),
    ],
    ids=str,
)
def test_the_failures_index_is_used_if_many_rows_match(
    finder: Finder, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, few: str, many: str
) -> None:
    for least, way in ((6, few), (5, many), (4, many)):
        monkeypatch.setattr(listed_pages, "_MANY", least)
        assert listed_pages._way(finder.connection(), wanted) == way


def _asked(finder: Finder, wanted: Wanted, *, worst_first: bool) -> list[str]:
    reader, asked = finder.connection(), list[str]()
    reader.set_trace_callback(asked.append)
    try:
        find = listed_pages.worst_first if worst_first else listed_pages.newest_first
        find(reader, wanted, conditions(wanted), None, 9)
    finally:
        reader.set_trace_callback(None)
    return [each for each in asked if listed_pages.COLUMNS in each]


@pytest.mark.parametrize(
    ("wanted", "way"),
    [(Wanted(agent="a", service="s"), BY_TIME), (Wanted(agent="a", status="ok"), "listed AS l  WHERE")],
)
def test_passed_rows_are_read_by_time_if_the_index_covers_the_filter(finder: Finder, wanted: Wanted, way: str) -> None:
    failed, others = _asked(finder, wanted, worst_first=True)
    assert f"badness < {NOT_FAILED:g}" in failed
    assert f"badness >= {NOT_FAILED:g}" in others
    assert way in others


def test_a_text_search_reads_rows_unordered_and_sorts_afterwards(finder: Finder) -> None:
    filtered = Wanted(agent="a", status="ok")
    searched = Wanted(agent="a", status="ok", text="nothing")
    assert all("ORDER BY +badness, +no LIMIT" in each for each in _asked(finder, searched, worst_first=True))
    assert all("ORDER BY badness, no LIMIT" in each for each in _asked(finder, filtered, worst_first=True))
    [asked] = _asked(finder, searched, worst_first=False)
    assert "ORDER BY +at DESC, +no DESC LIMIT" in asked
    [asked] = _asked(finder, filtered, worst_first=False)
    assert "ORDER BY at DESC, no DESC LIMIT" in asked


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("wanted", [Wanted(), Wanted(agent="a", service="s"), Wanted(status="ok", agent="a")], ids=str)
def test_rows_are_read_from_any_position_up_to_the_limit(finder: Finder, wanted: Wanted, limit: int) -> None:
    where = conditions(wanted).also("no > 0")
    for find, order, key in ((listed_pages.worst_first, WORST, 2), (listed_pages.newest_first, NEWEST, -1)):
        positions: list[Position | None] = [None, *order]
        for at, after in enumerate(positions):
            rows = find(finder.connection(), wanted, where, after, limit)
            assert [(row[key], row[0]) for row in rows] == order[at : at + limit]
