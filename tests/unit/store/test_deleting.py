"""Deletions: complete, exact and safe against kills."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import orjson
import pytest

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
    """Return unique content of a run."""
    return f"canary-{number:04}-".encode() * 4


def text(key: bytes, value: bytes) -> bytes:
    """Return an OTLP attribute in protobuf."""
    value = b"\x0a" + bytes([len(value)]) + value
    value = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(value)]) + value
    return b"\x0a" + bytes([len(value)]) + value


def changes(store: Store, number: int, user: str, session: str) -> WriteSet:
    id_, hidden = trace_id(number), secret(number)
    chunk = Chunk(store.next_chunk_id(), id_, False, 1, 1, hidden)
    store.append([chunk]).result()
    group = group_id(f"failed-{number}")
    body = orjson.dumps({"reason": hidden.decode(), "metadata": {"failure_group": {"id": group}}})
    hidden_text = f"{hidden.decode()}{session}"
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
        listed=[ListedRow(id_, number * DAY_MS, "a", "s", "", user, False, hidden, (f"key={hidden_text}",))],
        failures=[
            FailureGroupRow(group, "trace.m", "l", hidden_text, hidden_text, "high", "a", "s", hidden_text, 1, 1.0, 1.0)
        ],
    )


def fill(store: Store) -> None:
    """Store runs 1, 2 and 4 of ann (two sessions), and 3 of bob."""
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
    """Return runs with content left in any file."""
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
def test_a_deletion_removes_only_the_selected_traces(store: Store, kind: str, value: str, stays: set[int]) -> None:
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
    fill(store)
    delete(store, "user", "ann")
    [line] = (store.path / LOG).read_bytes().splitlines()
    found = orjson.loads(line)
    assert (found["by"], found["selector"], found["deleted"]["traces"]) == ("me", "user", 3)
    assert b"ann" not in line
    assert (store.path / LOG).stat().st_mode & 0o777 == 0o600


def test_a_deletion_can_be_repeated_on_a_restored_backup(store: Store, tmp_path: Path) -> None:
    fill(store)
    folder = tmp_path / "restored"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "pandaeval.db")) as backup:
        store.reads.connection().backup(backup)
    delete(store, "user", "ann")
    shutil.copy(store.path / LOG, folder)
    with closing(Store(folder, "off")) as restored:
        assert left(restored) == {1, 2, 3, 4}
        assert delete(restored, "user", "ann")
        assert left(restored) == {3}
        first, second = map(orjson.loads, (folder / LOG).read_bytes().splitlines())
        assert (first["hash"], first["deleted"]) == (second["hash"], second["deleted"])


def test_late_spans_and_decisions_do_not_restore_a_deleted_trace(store: Store) -> None:
    late = changes(store, 3, "bob", "two")
    fill(store)
    delete(store, "user", "bob")
    assert store.decided([trace_id(3)])[trace_id(3)].final
    assert store.commit(late).result() == []
    assert complete(store.deletions, store.path, lambda: False)
    assert numbers(store, "traces") == 3
    assert numbers(store, "sessions") == 2
    store.commit(changes(store, 5, "bob", "two")).result()
    assert numbers(store, "sessions") == 3, "a new trace may start the session again"


def test_tombstones_of_a_deletion_are_removed_after_the_retention(store: Store) -> None:
    fill(store)
    delete(store, "trace", trace_id(3).hex())
    store.forget(600.0, 100.0, store.clock.calendar() + 50.0).result()
    assert numbers(store, "meta WHERE key LIKE 'gone:%'") > 0
    store.forget(600.0, 100.0, store.clock.calendar() + 200.0).result()
    assert numbers(store, "meta WHERE key LIKE 'gone:%'") == 0


@pytest.mark.parametrize(
    ("kind", "key"), [("user", b"enduser.id"), ("session", b"gen_ai.conversation.id"), ("session", b"")]
)
def test_undecided_spans_are_deleted_by_their_user_or_session(store: Store, kind: str, key: bytes) -> None:
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


@pytest.mark.parametrize(
    ("value", "stays"), [("one", {2, 6}), ("one@service:support", {1, 5})], ids=["first service", "other service"]
)
def test_deleting_one_of_two_sessions_that_share_an_id_keeps_the_other(
    store: Store, value: str, stays: set[int]
) -> None:
    for number, session, service in ((1, "one", "shop"), (2, "one@service:support", "support")):
        decided = replace(changes(store, number, "", session), services={session: (service,)}, failures=[])
        store.commit(decided).result()
        named = text(b"service.name", service.encode()) + text(b"session.id", b"one")
        content = secret(number + 4) + named
        store.append([Chunk(store.next_chunk_id(), trace_id(number + 4), False, 1, 1, content)]).result()
    assert delete(store, "session", value)
    assert left(store) == stays


def test_a_deletion_removes_the_example_of_an_incident_and_keeps_its_other_failures(store: Store) -> None:
    fill(store)
    group = group_id("failed-3")
    row = FailureGroupRow(group, "trace.m", "l", "t", "d", "high", "a", "s", "x", 2, 1.0, 1.0)
    store.commit(WriteSet(failures=[row])).result()
    delete(store, "user", "bob")
    held = {each.id: each for each in store.reads.failure_groups()}
    assert (held[group].count, held[group].title, held[group].text) == (2, "l", "")
    store.commit(WriteSet(failures=[row])).result()
    assert {each.id: each for each in store.reads.failure_groups()}[group].text == ""


def test_sinks_that_hold_copies_are_listed(store: Store) -> None:
    store.put("cursor:jsonl", "{}").result()
    with store.reads.snapshot() as reader:
        assert sinks(reader) == ["jsonl"]


_STEP = {"stages._TRACES": 1, "stages._CHUNKS": 1, "stages.BATCHES": 1, "queued.BATCHES": 1, "selecting._MARKED": 1}
"""Small step limits, so that each stage has several steps."""
_STAGES = ("rows", "mark", "chunks", "outbox", "rest", "purge")
_LIVES = f"""
import os
import sys
from pathlib import Path
from unittest.mock import patch
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.store import Store
from pandaeval_collector.store.deleting import complete
for name, value in {_STEP}.items():
    patch("pandaeval_collector.store.deleting." + name, value).start()
for line in sys.stdin:
    point, folder = line.rstrip().split(" ", 1)
    pid = os.fork()
    if not pid:
        failpoints.arm({{failpoints.VARIABLE: point}})
        store = Store(Path(folder), "full")
        complete(store.deletions, store.path, lambda: False)
        store.close()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Runs each input line (fail point, folder) in a fork and prints its exit code."""
Life = Callable[[Path, str], bool]


@pytest.fixture(scope="module")
def life() -> Iterator[Life]:
    """Continue the deletion with a fail point; return whether it was killed."""
    command = [sys.executable, "-c", _LIVES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lives:
        asked, answers = lives.stdin, lives.stdout
        assert asked
        assert answers

        def one(folder: Path, point: str) -> bool:
            print(point, folder, file=asked, flush=True)
            ended = int(answers.readline())
            assert ended in (0, -signal.SIGKILL)
            return ended != 0

        yield one
        asked.close()


def stage(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "pandaeval.db")) as connection:
        rows = connection.execute("SELECT value FROM meta WHERE key LIKE 'deletion:%'").fetchall()
    return next((str(orjson.loads(value)["stage"]) for (value,) in rows), "")


def dump(folder: Path) -> dict[str, list[Any]]:
    """Return all rows by table, without times."""
    with closing(sqlite3.connect(folder / "pandaeval.db")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    found["meta"] = [(key, *value) for key, *value in found["meta"] if not key.startswith(("gone:", "clock"))]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def hashes(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "pandaeval.db")) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM meta WHERE key LIKE 'gone:%'")}


@dataclass(frozen=True)
class Begun:
    """A begun deletion, and a copy that completed it."""

    folder: Path
    whole: Path
    stages: list[str]
    """The stage before each step."""

    def copy(self, folder: Path) -> Path:
        """Copy the store with the begun deletion."""
        return Path(shutil.copytree(self.folder, folder / "store"))

    def check(self, folder: Path) -> None:
        """Check the deletion against the uninterrupted copy."""
        with closing(Store(folder, "full")) as store:
            assert complete(store.deletions, store.path, lambda: False)
            assert not store.deletions.pending()
            assert left(store) == {3}
            assert [row.body[2:18] for row in store.outbox.after("logs", 0)].count(trace_id(3)) == 1
        assert dump(folder) == dump(self.whole)
        assert hashes(folder) == hashes(self.whole)
        lines = {orjson.dumps(orjson.loads(line)["deleted"]) for line in (folder / LOG).read_bytes().splitlines()}
        assert lines == {
            orjson.dumps(orjson.loads(line)["deleted"]) for line in (self.whole / LOG).read_bytes().splitlines()
        }


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    folder, whole = tmp_path_factory.mktemp("begun"), tmp_path_factory.mktemp("whole") / "store"
    with closing(Store(folder, "full")) as store:
        fill(store)
        store.append([Chunk(store.next_chunk_id(), trace_id(5), False, 1, 1, secret(5))]).result()
        named = text(b"user.id", b"ann")
        store.append([Chunk(store.next_chunk_id(), trace_id(5), False, 1, 1, named)]).result()
        store.deletions.begin("user", "ann", "me").result()
    shutil.copytree(folder, whole)
    stages = ["rows"]
    with ExitStack() as stack:
        for name, value in _STEP.items():
            stack.enter_context(patch(f"pandaeval_collector.store.deleting.{name}", value))
        store = stack.enter_context(closing(Store(whole, "full")))
        while stages[-1] != "purge":
            stages.append(store.deletions.step().result())
        complete(store.deletions, store.path, lambda: False)
    return Begun(folder, whole, [*stages, ""])


def test_an_uninterrupted_deletion_keeps_the_rows_of_other_users(begun: Begun) -> None:
    before, after = dump(begun.folder), dump(begun.whole)
    assert Counter(begun.stages).keys() == {*_STAGES, ""}
    for table in ("chunks", "traces", "members", "results", "run_results", "jobs", "people_labels", "judged"):
        assert after[table], table
        assert [row for row in before[table] if row in after[table]] == after[table], table
    assert "ann" not in {value for rows in after.values() for row in rows for value in row}


@pytest.mark.parametrize("point", ["in_deletion", "before_commit", "after_commit"])
@pytest.mark.parametrize("killed_in", _STAGES)
def test_a_deletion_is_completed_after_a_kill_in_any_stage(
    begun: Begun, life: Life, tmp_path: Path, killed_in: str, point: str
) -> None:
    folder = begun.copy(tmp_path)
    steps = [at for at, name in enumerate(begun.stages) if name == killed_in]
    at = Random(f"{killed_in} {point}").choice(steps)
    if (killed_in, point) == ("purge", "in_deletion"):  # reached only by a start after a kill in the purge
        assert life(folder, f"before_commit:{at + 1}")
        at = 0
    assert life(folder, f"{point}:{at + 1}")
    assert stage(folder) == (begun.stages[at + 1] if point == "after_commit" else killed_in)
    begun.check(folder)


@pytest.mark.parametrize("seed", range(3))
def test_a_deletion_is_completed_after_repeated_kills(begun: Begun, life: Life, tmp_path: Path, seed: int) -> None:
    folder, random, killed = begun.copy(tmp_path), Random(seed), 0
    points = [f"{point}:{at}" for point in ("in_deletion", "before_commit", "after_commit") for at in (3, 4, 5)]
    while life(folder, random.choice(points)):
        killed += 1
    assert killed >= 3
    begun.check(folder)
