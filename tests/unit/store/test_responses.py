"""Traces by model response."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.store import DecidedTrace, ResponseRow, SessionTraceRow, Store, WriteSet, responses
from pandaeval_collector.store.responses import response_digest
from support.database import open_database


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def row(number: int, session: str = "") -> SessionTraceRow:
    return SessionTraceRow(trace_id(number), session, number * 10, number * 10 + 5, b"body %d" % number, b"answer")


def decide(store: Store, number: int, gives: str = "", continues: str = "", session: str = "") -> None:
    trace = DecidedTrace(trace_id(number), 1, False, "d", frozenset(), (), 0)
    id_pairs = [(gives, False), (continues, True)]
    rows = [ResponseRow(trace.trace_id, response_digest(id_), continued) for id_, continued in id_pairs if id_]
    touched = {session} if session else set()
    changes = WriteSet(traces=[trace], session_traces=[row(number, session)], responses=rows, touched=touched)
    store.commit(changes).result()


def given_by(store: Store, *ids: str) -> list[SessionTraceRow]:
    return sorted(store.reads.responses.traces(ids, continued=False), key=lambda found: found.trace_id)


def continued_by(store: Store, *ids: str) -> list[SessionTraceRow]:
    return sorted(store.reads.responses.traces(ids, continued=True), key=lambda found: found.trace_id)


def test_more_responses_than_fit_into_one_query_are_found(store: Store) -> None:
    count = 501
    changes = WriteSet(
        traces=[DecidedTrace(trace_id(each), 1, False, "d", frozenset(), (), 0) for each in range(count)],
        session_traces=[row(each) for each in range(count)],
        responses=[ResponseRow(trace_id(each), response_digest(f"r{each}"), False) for each in range(count)],
    )
    store.commit(changes).result()
    assert given_by(store, *(f"r{each}" for each in range(count))) == [row(each) for each in range(count)]


@pytest.mark.parametrize("restarted", [False, True])
def test_traces_are_found_by_the_responses_they_give_or_continue(tmp_path: Path, restarted: bool) -> None:
    store = Store(tmp_path, "off")
    decide(store, 1, gives="r1")
    decide(store, 2, gives="r2", continues="r1", session="s")
    decide(store, 3, continues="r2")
    if restarted:
        store.close()
        store = Store(tmp_path, "off")
    assert given_by(store, "r1") == [row(1)]
    assert given_by(store, "r1", "r2", "r3") == [row(1), row(2, "s")]
    assert continued_by(store, "r1") == [row(2, "s")]
    assert continued_by(store, "r1", "r2") == [row(2, "s"), row(3)]
    assert given_by(store, "r3") == continued_by(store, "r3") == given_by(store) == []
    store.close()


def test_old_and_new_responses_are_found_with_a_complete_filter(store: Store) -> None:
    decide(store, 1, gives="r1")
    store.close()
    again = Store(store.path, "off")
    again._responses._filling.join()
    assert again._responses.complete
    assert given_by(again, "r1") == [row(1)]
    decide(again, 2, gives="r2")
    assert given_by(again, "r2") == [row(2)]
    assert given_by(again, "unknown") == []
    again.close()


def test_an_empty_store_has_no_responses(store: Store) -> None:
    store._responses.stop()
    store._responses.complete = False  # so that the table is read
    assert given_by(store, "r1") == continued_by(store, "r1") == []


def test_a_response_of_many_traces_does_not_displace_other_responses(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "MANY", 3)
    for number in range(1, 9):
        decide(store, number, gives="common")
    decide(store, 9, gives="rare")
    found = given_by(store, "common", "rare")
    assert [each.trace_id for each in found] == [trace_id(number) for number in (1, 2, 3, 9)], "the first 3, and 9"
    assert [each.trace_id for each in given_by(store, "common")] == [trace_id(number) for number in (1, 2, 3)]


def test_a_trace_with_many_responses_is_found_once(store: Store) -> None:
    trace = DecidedTrace(trace_id(1), 1, False, "d", frozenset(), (), 0)
    ids = [f"r{number}" for number in range(600)]
    rows = [ResponseRow(trace.trace_id, response_digest(id_), False) for id_ in ids]
    store.commit(WriteSet(traces=[trace], session_traces=[row(1)], responses=rows)).result()
    decide(store, 2, gives="another")
    assert given_by(store, *ids) == [row(1)]
    assert given_by(store, *ids, "another") == [row(1), row(2)], "read with several statements"


def test_responses_in_blocks_of_older_traces_are_found(store: Store) -> None:
    decide(store, 1, gives="r")
    store.close()
    with open_database(store.path / "pandaeval.db") as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'traces'", (3 << responses.BLOCK_BITS,))
    again = Store(store.path, "off")
    decide(again, 2, gives="r")
    assert [each.trace_id for each in given_by(again, "r")] == [trace_id(1), trace_id(2)]
    again.close()


def test_a_response_digest_matches_older_stores_and_accepts_any_text() -> None:
    assert response_digest("chatcmpl-1").hex() == "05ceaaf605966fc6"
    assert response_digest("\ud800") != response_digest("\ud801")


def test_responses_in_blocks_older_than_all_traces_are_deleted(store: Store) -> None:
    decide(store, 1, gives="r", continues="q")
    store.close()
    with open_database(store.path / "pandaeval.db") as connection:
        connection.execute("UPDATE traces SET no = ?", (5 << responses.BLOCK_BITS,))
    again = Store(store.path, "off")
    try:
        for left, limit in ((1, 1), (0, 1000), (0, 1000)):
            again.forget(1.0, 1e9, again.clock.calendar(), limit=limit).result()
            assert again.reads.connection().execute("SELECT count(*) FROM responses").fetchone()[0] == left
    finally:
        again.close()
