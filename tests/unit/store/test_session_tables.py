"""Sessions: traces in order, open, ended."""

from __future__ import annotations

import pytest

from pandaeval_collector.store import DecidedTrace, SessionTraceRow, Store, WriteSet
from support.database import kept_bytes


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def row(number: int, session: str, start_ns: int | None = None, body: bytes = b"{}") -> SessionTraceRow:
    start = number if start_ns is None else start_ns
    return SessionTraceRow(trace_id(number), session, start, start + 1, body, b"answer %d" % number)


def filed(store: Store, *rows: SessionTraceRow, closed: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    named = {each.session_id for each in rows if each.session_id}
    store.commit(WriteSet(session_traces=[*rows], touched=named - closed, closed={*closed})).result()


def test_traces_of_a_session_are_ordered_by_start(store: Store) -> None:
    rows = [row(1, "s", 30), row(2, "s", 10), row(4, "s", 20), row(3, "s", 20), row(5, "t", 5), row(6, "")]
    filed(store, *rows)
    assert store.reads.session_traces("s") == [rows[1], rows[3], rows[2], rows[0]]
    assert store.reads.session_traces("t") == [rows[4]]
    assert store.reads.session_traces("u") == []


def test_session_facts_are_read_without_answers(store: Store) -> None:
    rows = [row(1, "s", 30), row(2, "s", 10, b'{"agent":"a"}'), row(5, "t", 5)]
    filed(store, *rows)
    facts = [*store.reads.session_facts("s")]
    assert [(each.trace_id, each.start_ns, each.body) for each in facts] == [
        (each.trace_id, each.start_ns, each.body) for each in (rows[1], rows[0])
    ]
    assert {each.answer for each in facts} == {b""}
    assert [*store.reads.session_facts("u")] == []


def test_member_rows_are_found_by_trace_id(store: Store) -> None:
    rows = [row(1, "s"), row(2, "")]
    filed(store, *rows)
    assert store.reads.left_behind([trace_id(number) for number in (1, 2, 3)]) == {each.trace_id: each for each in rows}
    assert store.reads.session_of([trace_id(number) for number in (1, 2, 3)]) == {trace_id(1): "s"}


def test_many_member_rows_are_found_with_several_statements(store: Store) -> None:
    rows = [row(number, f"s{number % 7}") for number in range(1, 1203)]
    filed(store, *rows)
    ids = [each.trace_id for each in rows]
    assert store.reads.left_behind(ids) == {each.trace_id: each for each in rows}
    assert store.reads.session_of(ids) == {each.trace_id: each.session_id for each in rows}


class TestNewest:
    def test_the_newest_traces_and_the_size_of_each_session_are_read(self, store: Store) -> None:
        filed(store, *(row(number, "s" if number % 3 else "t") for number in range(1, 13)))
        found = store.reads.newest_traces(["s", "t", "u"], 2)
        assert {id_: (size, sorted(each.trace_id for each in rows)) for id_, (size, rows) in found.items()} == {
            "s": (8, [trace_id(10), trace_id(11)]),
            "t": (4, [trace_id(9), trace_id(12)]),
            "u": (0, []),
        }
        assert [each for each in found["t"][1] if each.trace_id == trace_id(9)] == [row(9, "t")]

    def test_traces_with_the_same_start_are_taken_by_greater_id(self, store: Store) -> None:
        filed(store, *(row(number, "s", 5) for number in (3, 1, 2)))
        (size, rows) = store.reads.newest_traces(["s"], 2)["s"]
        assert (size, {each.trace_id for each in rows}) == (3, {trace_id(3), trace_id(2)})

    def test_all_traces_of_a_small_session_are_read(self, store: Store) -> None:
        filed(store, row(1, "s"), row(2, "s"))
        size, rows = store.reads.newest_traces(["s"], 50)["s"]
        assert (size, sorted(rows, key=lambda each: each.start_ns)) == (2, [row(1, "s"), row(2, "s")])
        assert store.reads.newest_traces([], 50) == {}


def test_a_session_is_open_until_it_is_closed_and_reopens_with_a_new_trace(store: Store) -> None:
    filed(store, row(1, "s"), row(2, "t"))
    filed(store, row(3, "t"), closed={"t"})
    assert {id_: store.reads.session_is_open(id_) for id_ in ("s", "t", "u")} == {"s": True, "t": False, "u": None}
    assert [*store.reads.open_sessions()] == ["s"]
    filed(store, row(4, "t"))
    assert sorted(store.reads.open_sessions()) == ["s", "t"]


def test_uncompared_returns_open_sessions_with_an_uncompared_trace(store: Store) -> None:
    not_yet = b'{"evidence":null,"x":1}'
    rows = [
        row(1, "a", body=not_yet),
        row(2, "a"),
        row(3, "b", body=b'{"evidence":{"loop_detection":"d"}}'),
        row(4, "c", body=not_yet),
    ]
    filed(store, *rows, closed={"c"})
    assert store.reads.uncompared() == ["a"]


def test_session_endings_are_stored_until_they_are_forgotten(store: Store) -> None:
    assert store.reads.endings() == []
    store.append([], ["t", "s"]).result()
    store.append([], ["s"]).result()
    store.commit(WriteSet(endings=["u", "s"])).result()
    assert store.reads.endings() == ["s", "t", "u"]
    store.forget_endings(["s", "u", "x"]).result()
    assert store.reads.endings() == ["t"]


class TestDecided:
    def decide(self, store: Store, *ids: int, **fields: object) -> None:
        values = {
            "revision": 1,
            "final": False,
            "digest": "d",
            "known": frozenset({b"1" * 8}),
            "chunks": (7, 9),
            "size": 5,
        }
        store.commit(WriteSet(traces=[DecidedTrace(trace_id(each), **(values | fields)) for each in ids])).result()  # type: ignore[arg-type]

    def test_a_trace_is_known_with_its_digest_and_chunks(self, store: Store) -> None:
        self.decide(store, 1, digest="abc")
        self.decide(store, 2, chunks=())
        assert [store.reads.held(trace_id(number)) for number in (1, 2, 3)] == [("abc", (7, 9)), ("d", ()), None]
        assert store.reads.decided([trace_id(each) for each in range(1, 4)]).keys() == {trace_id(1), trace_id(2)}

    @pytest.mark.parametrize("number", [1, 499, 500, 501, 1200])
    def test_any_number_of_decided_traces_is_found(self, store: Store, number: int) -> None:
        self.decide(store, *range(1, number + 1))
        ids = [trace_id(each) for each in range(1, number + 1)]
        found = store.decided([*ids, trace_id(number + 1)])
        assert {*found} == {*ids}
        assert {(each.revision, each.final, each.chunks, each.size) for each in found.values()} == {
            (1, False, (7, 9), 5)
        }

    def test_a_trace_decided_by_another_collector_is_not_decided_here(self, store: Store) -> None:
        store.commit(WriteSet(strangers={trace_id(1): "theirs"}, contents={trace_id(1): b"kept"})).result()
        assert store.decided([trace_id(1)]) == {}
        assert store.reads.held(trace_id(1)) == ("theirs", ())
        store.commit(WriteSet(strangers={trace_id(1): "newer"})).result()
        assert store.reads.held(trace_id(1)) == ("newer", ())
        assert kept_bytes(store) == 4
        self.decide(store, 1, digest="ours")
        assert store.reads.held(trace_id(1)) == ("ours", (7, 9))
        assert kept_bytes(store) == 0, "the trace's own chunks replace the sent contents"
        store.commit(WriteSet(strangers={trace_id(1): "theirs"}, contents={trace_id(1): b"kept"})).result()
        assert store.reads.held(trace_id(1)) == ("ours", (7, 9))
        assert kept_bytes(store) == 0
