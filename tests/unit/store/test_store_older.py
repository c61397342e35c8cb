"""What a store of an older version holds is there, and means the same, after the program was updated."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest

from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.store import DecidedTrace, ResultRow, Store, WriteSet
from pandaeval_collector.store.rows import pack_ids
from pandaeval_collector.store.schema import MIGRATIONS
from support.database import open_database

T1, T2 = b"\x01" * 16, b"\x02" * 16
SPANS = frozenset({b"aaaaaaaa", b"bbbbbbbb"})
VECTOR = np.array([0.6, 0.8], np.float32)


def member(vector: bytes, output: str | None) -> bytes:
    facts: dict[str, object] = {
        "session_id": "s",
        "agent": "helper",
        "digest": "d1",
        "output": output,
        "embedder": "embedded-1",
        "vector": base64.b64encode(vector).decode(),
        "tokens": ["refund", "sent"],
        "signals": {},
    }
    return orjson.dumps(facts)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of schema version 3 with two traces, their session and results, opened by the current program."""
    with open_database(tmp_path / "pandaeval.db") as old:
        for script in MIGRATIONS[:3]:
            old.executescript(script)
        old.execute("PRAGMA user_version = 3")
        old.execute("INSERT INTO chunks VALUES (7, ?, 0, 2, 1, 5, 0, 'spans')", (T1,))
        old.execute("INSERT INTO chunks VALUES (8, ?, 0, 2, 1, 5, 0, 'later')", (T2,))
        old.execute("INSERT INTO traces VALUES (?, 2, 0, 'd1', ?, '[7]', 5, 20)", (T1, pack_ids(SPANS)))
        old.execute("INSERT INTO traces VALUES (?, 1, 1, 'd2', x'', '[]', 0, 10)", (T2,))
        old.execute("INSERT INTO sessions VALUES ('s', 1, 20)")
        old.execute(
            "INSERT INTO session_traces VALUES (?, 's', 2, 3, ?)", (T1, member(VECTOR.tobytes(), "refund sent"))
        )
        old.execute("INSERT INTO session_traces VALUES (?, 's', 1, 2, ?)", (T2, member(b"", None)))
        rows = [
            (5, "a", T1.hex(), "trace.m"),
            (6, "b", T1.hex(), "trace.m"),
            (9, "c", "s", "session.m"),
            (10, "x", "?", "y"),
        ]
        old.executemany("INSERT INTO results VALUES (?, ?, ?, ?, 1, 0, 20, '{}')", rows)
        old.execute("DELETE FROM results WHERE seq = 10")
        old.execute("INSERT INTO outbox (signal, created_at, body, size) VALUES ('logs', 20, x'6c6f67', 3)")
    store = Store(tmp_path, "off")
    yield store
    store.close()


def test_decided_traces_are_known_and_only_open_chunks_are_resumed(store: Store) -> None:
    found = store.decided([T1, T2])
    assert (found[T1].revision, found[T1].known, found[T1].chunks, found[T1].final) == (2, SPANS, (7,), False)
    assert found[T2].final
    assert [chunk.id for chunk in store.open_chunks()] == [8]
    assert store.held(T1) == ("d1", (7,))


def test_results_stand_under_their_numbers_and_no_number_is_given_again(store: Store) -> None:
    assert [(row.seq, row.id) for row in store.results_after(0)] == [(5, "a"), (6, "b"), (9, "c")]
    standing = {key: row.id for key, row in store.newest_results([T1.hex(), "s"]).items()}
    assert standing == {(T1.hex(), "trace.m"): "b", ("s", "session.m"): "c"}
    again = DecidedTrace(T1, 3, False, "d3", SPANS, (7,), 5)
    changes = WriteSet(traces=[again], results=[ResultRow(id_, T1.hex(), "trace.m", 3, b"{}") for id_ in ("b", "n")])
    assert [(row.id, row.seq) for row in store.commit(changes).result(10)] == [("n", 11)]
    assert store.decided([T1])[T1].revision == 3


def test_sessions_hold_their_traces_in_order(store: Store) -> None:
    assert list(store.open_sessions()) == ["s"]
    assert [row.trace_id for row in store.session_traces("s")] == [T2, T1]
    assert store.session_of([T1, T2]) == {T1: "s", T2: "s"}
    size, newest = store.newest_traces(["s", "unknown"], 1)["s"]
    assert (size, [row.trace_id for row in newest]) == (2, [T1])


def test_answers_can_be_compared(store: Store) -> None:
    silent, spoken = (from_row(row) for row in store.session_traces("s"))
    assert (silent.facts.captured, silent.facts.said, silent.facts.embedder) == (False, False, None)
    assert (spoken.facts.captured, spoken.facts.said, spoken.facts.embedder) == (True, True, "embedded-1")
    assert spoken.text == "refund sent"
    direction, words = spoken.direction_and_words()
    assert direction.components == pytest.approx([0.6, 0.8])
    assert words == {"refund", "sent"}


def test_what_waits_to_be_sent_waits_on(store: Store) -> None:
    assert [row.body for row in store.outbox_after("logs", 0)] == [b"log"]
    assert store.outbox_bytes() == 3
