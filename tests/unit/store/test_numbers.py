"""Units by number, with current results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.store import DecidedTrace, ResultRow, Store, WriteSet, numbers
from support.database import open_database

ID, SPAN = "0123456789abcdef" * 2, "0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("unit", "trace"),
    [
        (ID, ID),
        (f"{ID}:{SPAN}", ID),
        (f"{ID}:{SPAN}0", ""),
        (f"{ID}:", ""),
        (ID[1:], ""),
        (ID + "0", ""),
        (ID.upper(), ""),
        ("my session", ""),
        ("", ""),
        (f"x{ID}", ""),
        (f"{ID}\n", ""),
    ],
)
def test_trace_of_returns_the_trace_id_of_a_trace_or_turn(unit: str, trace: str) -> None:
    assert numbers.trace_of(unit) == trace


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1001])
def test_values_are_batched_by_500(count: int) -> None:
    groups = [*numbers.batched(iter(range(count)))]
    assert [value for _, group in groups for value in group] == [*range(count)]
    assert all(marks == ",".join("?" * len(group)) and 0 < len(group) <= 500 for marks, group in groups)
    assert len(groups) == -(-count // 500)


@pytest.mark.parametrize(
    ("rows", "blocks"), [([], []), ([1], [0]), ([8191, 8192], [0, 1]), ([8192], [1]), ([5, 30_000], [0, 1, 2, 3])]
)
def test_blocks_cover_the_stored_trace_numbers(store: Store, rows: list[int], blocks: list[int]) -> None:
    store.close()
    with open_database(store.path / "pandaeval.db") as connection:
        connection.executemany(
            "INSERT INTO traces VALUES (?, x'01', 1, 1, '', x'', '[]', 0, 0)", [(no,) for no in rows]
        )
        assert json.loads(numbers.blocks(connection)) == blocks
        assert json.loads(numbers.blocks(connection, "traces", 15)) == ([0] if rows else [])


def test_ids_and_units_are_mapped_to_trace_and_session_numbers(store: Store) -> None:
    ids = [number.to_bytes(16, "big") for number in range(1, 4)]
    traces = [DecidedTrace(id_, 1, False, "d", frozenset(), (), 0) for id_ in ids]
    store.commit(WriteSet(traces=traces, touched={"s", ids[1].hex()})).result()
    reader = store.reads.connection()
    assert numbers.of_traces(reader, [ids[2], ids[0], b"?" * 16]) == {ids[0]: 1, ids[2]: 3}
    assert numbers.of_traces(reader, []) == {}
    named = numbers.of_sessions(reader, ["s", ids[1].hex(), "t"])
    assert set(named) == {"s", ids[1].hex()}
    units = [ids[0].hex(), f"{ids[2].hex()}:{SPAN}", "s", ids[1].hex(), "t"]
    assert sorted(numbers.of_units(reader, units)) == sorted([1, 2, 3, *(-no for no in named.values())])
    assert numbers.of_units(reader, []) == []


class TestNewestResults:
    def row(self, id_: str, unit: str, metric: str = "trace.m", **fields: object) -> ResultRow:
        values = {"success": True, "signal": 0.5} | fields
        return ResultRow(id_, unit, metric, 1, b'{"id":"%s"}' % id_.encode(), **values)  # type: ignore[arg-type]

    def test_the_newest_result_of_each_unit_and_metric_is_read_with_all_fields(self, store: Store) -> None:
        units = [f"{number:032x}" for number in range(1, 1202)]
        store.commit(WriteSet(results=[self.row(f"a{unit}", unit, counted=True) for unit in units])).result()
        later = [
            self.row("b", units[0], settled=False),
            self.row("c", units[0], "trace.n"),
            self.row("d", "s", "session.m"),
        ]
        store.commit(WriteSet(results=later, touched={"s"})).result()
        found = store.reads.newest_results([*units, "s", "t"])
        assert len(found) == 1203
        newest = found[units[0], "trace.m"]
        assert (newest.id, newest.settled, newest.counted, newest.body) == ("b", False, 0, b'{"id":"b"}')
        assert (found[units[1], "trace.m"].settled, found[units[1], "trace.m"].counted) == (True, 1)
        assert (found[units[0], "trace.n"].id, found["s", "session.m"].id) == ("c", "d")
        assert store.reads.newest_results([]) == {}
        assert store.reads.newest_seq() == 1204
        assert [row.id for row in store.reads.results_after(1201, limit=2)] == ["b", "c"]

    def test_an_empty_store_has_no_results(self, store: Store) -> None:
        assert store.reads.newest_seq() == 0
        assert store.reads.results_after(0) == []
