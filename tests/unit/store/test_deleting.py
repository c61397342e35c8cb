"""Deletions: each selector deletes its data and no other data, leaves no bytes of it, and survives kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.base.runtime.failpoints import VARIABLE
from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    FailureGroupRow,
    JobRow,
    JudgedRow,
    ListedRow,
    ResponseRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
    outbox_batches,
)
from pandaeval_collector.store.deleting import LOG, complete, preview, sinks
from pandaeval_collector.store.failures import group_id
from pandaeval_collector.store.runs import RunBatch, RunResult
from pandaeval_otel.wire.labels import HumanLabel

DAY_MS = 86_400_000
ALL = ("traces", "span_batches", "judge_jobs", "labels", "queued_exports")
TABLES = ("chunks", "traces", "members", "results", "listed", "jobs", "people_labels", "judged", "sessions", "outbox")


def trace_id(number: int) -> bytes:
    return bytes([number]) * 16


def secret(number: int) -> bytes:
    """Content of a run that no other bytes of the store contain."""
    return f"canary-{number:04}-".encode() * 4


def text(key: bytes, value: bytes) -> bytes:
    """An OTLP attribute, as protobuf encodes it."""
    value = b"\x0a" + bytes([len(value)]) + value
    value = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(value)]) + value
    return b"\x0a" + bytes([len(value)]) + value


def changes(store: Store, number: int, user: str, session: str) -> WriteSet:
    id_, hidden = trace_id(number), secret(number)
    chunk = Chunk(store.next_chunk_id(), id_, False, 1, 1, hidden)
    store.append([chunk]).result()
    group = group_id(f"failed-{number}")
    body = orjson.dumps({"reason": hidden.decode(), "metadata": {"failure_group": {"id": group}}})
    said = f"{hidden.decode()}{session}"
    return WriteSet(
        traces=[DecidedTrace(id_, 1, False, "d", frozenset({b"1" * 8}), [chunk.id], 10)],
        results=[
            ResultRow(f"failed-{number}", id_.hex(), "trace.m", 1, body, success=False),
            ResultRow(f"session-{number}", session, "session.m", 1, body, success=True),
        ],
        judged=[JudgedRow(id_.hex(), "trace.m", session, "a", 1.0, True, 0.5, "model", "1", 1.0)],
        session_traces=[SessionTraceRow(id_, session, number, number + 1, hidden)],
        responses=[ResponseRow(id_, False, hidden[:8])],
        touched={session},
        outbox=outbox_batches("logs", [b"\x4a\x10" + id_ + hidden, b"\x4a\x10" + bytes(15) + b"k" + b"other"]),
        jobs=[JobRow(f"job-{number}", id_, "trace.j", 0.0, body)],
        listed=[ListedRow(id_, number * DAY_MS, "a", "s", "", user, False, hidden, (f"key={said}",))],
        failures=[FailureGroupRow(group, "trace.m", "l", said, said, "high", "a", "s", said, 1, 1.0, 1.0)],
    )


def fill(store: Store) -> None:
    """Runs 1 and 2 are of ann's session, 3 of bob's, and 4 of ann's other session."""
    for number, user, session in ((1, "ann", "one"), (2, "", "one"), (3, "bob", "two"), (4, "ann", "three")):
        store.commit(changes(store, number, user, session)).result()
        label = HumanLabel(trace_id(number).hex(), "trace.m", 1.0, True, "me", 1.0, secret(number).decode(), None)
        store.people.put([label], 1.0).result()
        run = RunResult(number, "trace.m", "scored", 1.0, True, 0.0, "1", secret(number))
        store.commit(WriteSet(runs=[RunBatch(1, [], [run])])).result()
        store.verdicts.keep(f"key-{number}", secret(number)).result()


def delete(store: Store, kind: str, value: str) -> bool:
    store.deletions.begin(kind, value, "me").result()
    return complete(store.deletions, store.path, lambda: False)


def left(store: Store) -> set[int]:
    """Runs whose content is in a file of the data directory: in rows, free pages or the write-ahead log."""
    data = b"".join(file.read_bytes() for file in store.path.iterdir() if file.name.startswith("pandaeval.db"))
    return {number for number in range(1, 10) if secret(number)[:12] in data}


def numbers(store: Store, table: str) -> int:
    return int(store.reads.connection().execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.parametrize(
    ("kind", "value", "stays"),
    [
        ("user", "ann", {3}),
        ("user", "bob", {1, 2, 4}),
        ("session", "one", {3, 4}),
        ("trace", trace_id(3).hex(), {1, 2, 4}),
        ("before", str(3 * DAY_MS), {3, 4}),
        ("user", "nobody", {1, 2, 3, 4}),
    ],
)
def test_a_selector_deletes_its_runs_and_no_others(store: Store, kind: str, value: str, stays: set[int]) -> None:
    """The files have no byte of the deleted runs, and all rows of the other runs."""
    fill(store)
    before = {table: numbers(store, table) for table in TABLES}
    with store.reads.snapshot() as reader:
        found = preview(reader, kind, value)
    gone = 4 - len(stays)
    assert {name: found[name] for name in (*ALL, "results")} == dict.fromkeys(ALL, gone) | {"results": 3 * gone}
    assert left(store) == {1, 2, 3, 4}
    assert delete(store, kind, value)
    assert left(store) == stays
    sessions = {3: "two", 4: "three", 1: "one", 2: "one"}
    expected = {table: number - gone for table, number in before.items()}
    expected["results"] -= gone
    expected["sessions"] = len({sessions[number] for number in stays})
    expected["listed"] = len(stays) + expected["sessions"]
    expected["outbox"] = before["outbox"]
    assert {table: numbers(store, table) for table in TABLES} == expected
    items = [row.body for row in store.outbox.after("logs", 0)]
    assert len(items) == 8 - gone
    assert not store.deletions.pending()


def test_the_log_of_deletions_has_counts_and_no_content(store: Store) -> None:
    """A line has who, when, a hash of the selector, and counts."""
    fill(store)
    delete(store, "user", "ann")
    [line] = (store.path / LOG).read_bytes().splitlines()
    found = orjson.loads(line)
    assert (found["by"], found["selector"], found["deleted"]["traces"]) == ("me", "user", 3)
    assert b"ann" not in line
    assert (store.path / LOG).stat().st_mode & 0o777 == 0o600


def test_late_spans_and_late_decisions_do_not_bring_a_trace_back(store: Store) -> None:
    """A decision that was under way is dropped with its chunks, and a late span meets a final tombstone."""
    late = changes(store, 3, "bob", "two")
    fill(store)
    delete(store, "user", "bob")
    assert store.decided([trace_id(3)])[trace_id(3)].final
    assert store.commit(late).result() == []
    assert complete(store.deletions, store.path, lambda: False)
    assert numbers(store, "traces") == 3
    assert numbers(store, "sessions") == 2
    store.commit(changes(store, 5, "bob", "two")).result()
    assert numbers(store, "sessions") == 3, "a new trace may begin the session again"


def test_a_tombstone_goes_after_the_retention(store: Store) -> None:
    """A restart reads tombstones that the retention has left."""
    fill(store)
    delete(store, "trace", trace_id(3).hex())
    store.forget(600.0, 100.0, store.clock.calendar() + 50.0).result()
    assert numbers(store, "meta WHERE key LIKE 'gone:%'") > 0
    store.forget(600.0, 100.0, store.clock.calendar() + 200.0).result()
    assert numbers(store, "meta WHERE key LIKE 'gone:%'") == 0


@pytest.mark.parametrize(
    ("kind", "key"), [("user", b"enduser.id"), ("session", b"gen_ai.conversation.id"), ("session", b"")]
)
def test_spans_of_an_undecided_trace_are_found_by_their_attributes(store: Store, kind: str, key: bytes) -> None:
    """All chunks of the trace go, also those that do not name the user or the session."""
    named = "ann" if not key else ""
    whole = [
        Chunk(store.next_chunk_id(), trace_id(5), False, 1, 1, secret(5)),
        Chunk(store.next_chunk_id(), trace_id(5), False, 1, 1, text(key, b"ann") if key else b"", session=named),
        Chunk(store.next_chunk_id(), trace_id(6), False, 1, 1, secret(6) + text(b"user.id", b"annette")),
    ]
    store.append(whole).result()
    with store.reads.snapshot() as reader:
        assert preview(reader, kind, "ann")["traces"] == 1
    assert delete(store, kind, "ann")
    assert left(store) == {6}
    assert numbers(store, "chunks") == 1


def test_an_incident_keeps_its_other_failures_and_loses_the_example(store: Store) -> None:
    """The example text of a deleted failure does not come back with the next failure of the incident."""
    fill(store)
    group = group_id("failed-3")
    row = FailureGroupRow(group, "trace.m", "l", "t", "d", "high", "a", "s", "x", 2, 1.0, 1.0)
    store.commit(WriteSet(failures=[row])).result()
    delete(store, "user", "bob")
    held = {each.id: each for each in store.reads.failure_groups()}
    assert (held[group].count, held[group].title, held[group].text) == (2, "l", "")
    store.commit(WriteSet(failures=[row])).result()
    assert {each.id: each for each in store.reads.failure_groups()}[group].text == ""


def test_sinks_with_copies_are_named(store: Store) -> None:
    """Exporters have a cursor as soon as they have sent something; Kafka's copies are named."""
    store.put("cursor:jsonl", "{}").result()
    with store.reads.snapshot() as reader:
        assert sinks(reader) == ["jsonl"]


_LIFE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from pandaeval_collector.store import Store
from pandaeval_collector.store import deleting
deleting._TRACES = 1
store = Store(Path(sys.argv[1]), "full")
deleting.complete(store.deletions, store.path, lambda: False)
store.close()
"""


@pytest.mark.parametrize("point", ["in_deletion:2", "before_commit:3", "after_commit:2"])
def test_the_next_start_completes_a_killed_deletion(tmp_path: Path, point: str) -> None:
    """Each life makes a step or two and is killed. Nothing of the user remains, and nothing else is gone."""
    store = Store(tmp_path, "full")
    fill(store)
    store.deletions.begin("user", "ann", "me").result()
    store.close()
    killed = 0
    for _ in range(30):
        environ = {**os.environ, VARIABLE: point}
        ended = subprocess.run([sys.executable, "-c", _LIFE, str(tmp_path)], env=environ, check=False)
        killed += ended.returncode == -signal.SIGKILL
        assert ended.returncode in (0, -signal.SIGKILL)
        if ended.returncode == 0:
            break
    store = Store(tmp_path, "full")
    assert not store.deletions.pending()
    assert killed >= 4
    assert left(store) == {3}
    assert numbers(store, "results") == 2
    assert (tmp_path / LOG).read_bytes().count(b'"by":"me"') >= 1
    store.close()
