"""Span attributes for lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.pipeline.line.listing import pairs_of
from pandaeval_collector.store import DecidedTrace, ListedRow, Store, WriteSet, listed
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_otel.model.raw import RawSpan, Resource
from support.database import open_database

KEYS = ("model", "tier", "flag", "list")


def _span(resource: dict[str, object] | None = None, **held: object) -> RawSpan:
    return RawSpan("t", "s", attributes=held, resource=Resource(resource or {}))


def test_each_value_of_a_listed_key_is_kept_once() -> None:
    spans = [_span({"tier": "gold"}, model="a", other="x"), _span(model="b", flag=True), _span(model="a", tier=3)]
    assert sorted(pairs_of(spans, KEYS)) == ["flag=true", "model=a", "model=b", "tier=3", "tier=gold"]
    assert pairs_of(spans, ()) == ()


def test_models_of_other_conventions_are_listed_under_the_genai_key() -> None:
    keys, models = ("gen_ai.request.model",), ("claude-5", "gpt-6")
    assert pairs_of([_span()], keys, models) == ("gen_ai.request.model=claude-5", "gen_ai.request.model=gpt-6")
    named = _span(**{"gen_ai.request.model": "small"})
    assert pairs_of([named], keys, models) == ("gen_ai.request.model=small",)
    assert pairs_of([_span()], KEYS, models) == ()


def test_attribute_pairs_are_bounded_and_only_of_plain_values() -> None:
    many = pairs_of([_span(model=f"m{number}") for number in range(100)], KEYS)
    assert len(many) == 8
    [long] = pairs_of([_span(model="x" * 10_000)], KEYS)
    assert len(long) == len("model=") + 200
    assert pairs_of([_span(model=["a"], tier={"a": 1}, flag="", list=b"x")], KEYS) == ()
    assert pairs_of([_span(model="\ud800")], KEYS) == ("model=?",)


def _commit(store: Store, numbers: range) -> None:
    changes = WriteSet()
    for number in numbers:
        id_ = number.to_bytes(16, "big")
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        pairs = (f"model=m{number % 2}", f"user={number}")
        changes.listed.append(ListedRow(id_, number, "a", "s", "", "", False, b'{"id":"x","at":1}', pairs))
    store.commit(changes).result(10)


def test_a_trace_decided_again_is_still_found_by_its_attributes(tmp_path: Path) -> None:
    store, finder = Store(tmp_path, "off"), Finder(tmp_path)
    _commit(store, range(1, 5))
    _commit(store, range(1, 5))
    assert len(finder.traces(Wanted(attribute=("model=m0",))).rows) == 2
    finder.close()
    store.close()


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_attributes_of_deleted_traces_are_forgotten_at_any_batch_limit(tmp_path: Path, limit: int) -> None:
    store = Store(tmp_path, "off")
    _commit(store, range(1, 21))
    store.close()
    with open_database(tmp_path / "pandaeval.db") as connection:
        connection.execute("DELETE FROM traces WHERE no <= 15")
        while listed.forget_pairs(connection, limit):
            pass
        (least, left) = connection.execute("SELECT min(no), count(*) FROM listed_attributes").fetchone()
        assert (least, left) == (16, 10)
        pairs = {pair for (pair,) in connection.execute("SELECT pair FROM attribute_pairs")}
        assert pairs == {"model=m0", "model=m1", *(f"user={number}" for number in range(16, 21))}


def test_forget_pairs_deletes_at_most_the_limit_per_call(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    _commit(store, range(1, 9))
    store.close()
    with open_database(tmp_path / "pandaeval.db") as connection:
        assert listed.forget_pairs(connection, 100) == 0
        connection.execute("DELETE FROM traces WHERE no <= 6")
        steps = []
        while not steps or steps[-1][0]:
            gone = listed.forget_pairs(connection, 5)
            (left,) = connection.execute("SELECT count(*) FROM listed_attributes").fetchone()
            steps.append((gone, left))
    assert steps == [(5, 11), (5, 6), (2, 4), (0, 4)]


def test_attribute_pairs_are_deleted_with_their_last_trace(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    _commit(store, range(1, 4))
    store.close()
    with open_database(tmp_path / "pandaeval.db") as connection:
        connection.execute("DELETE FROM traces")
        assert listed.forget_pairs(connection, 100) == 6
        assert connection.execute("SELECT count(*) FROM attribute_pairs").fetchone() == (0,)


def test_a_search_for_a_pair_uses_an_index_and_no_scan(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    _commit(store, range(1, 50))
    store.close()
    with open_database(tmp_path / "pandaeval.db") as connection:
        condition = listed.HAS_PAIR.format(t="l")
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM listed AS l WHERE {condition}", ("model=m1",))
        steps = [row[3] for row in plan]
        assert any(step.startswith("SEARCH l") for step in steps), steps
        assert not any(step.startswith("SCAN") for step in steps), steps
