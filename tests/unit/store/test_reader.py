"""Store reads from another process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pandaeval_collector.store import (
    Chunk,
    DecidedTrace,
    ResponseRow,
    ResultRow,
    SessionTraceRow,
    Store,
    StoreReader,
    WriteSet,
    response_digest,
)

T1, T2 = b"\x01" * 16, b"\x02" * 16


def decide(store: Store, trace_id: bytes, response: str) -> SessionTraceRow:
    chunk = Chunk(store.next_chunk_id(), trace_id, False, 1, 1, b"spans")
    store.append([chunk]).result()
    row = SessionTraceRow(trace_id, "s", trace_id[0], trace_id[0] + 1, b"{}", b"said")
    store.commit(
        WriteSet(
            traces=[DecidedTrace(trace_id, 1, False, "digest", frozenset({b"aaaaaaaa"}), (chunk.id,), 5)],
            results=[ResultRow(f"r{trace_id[0]}", trace_id.hex(), "trace.m", 1, b"{}")],
            session_traces=[row],
            responses=[ResponseRow(trace_id, response_digest(response), False)],
            touched={"s"},
        )
    ).result()
    return row


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, "off")) as store:
        yield store


def test_a_store_reader_reads_all_data_that_a_scoring_worker_needs(store: Store) -> None:
    row = decide(store, T1, "resp_1")
    with closing(StoreReader(store.path)) as alone:
        assert alone.decided([T1, T2]) == store.decided([T1, T2])
        assert alone.held(T1) == ("digest", (1,))
        assert alone.contents(T1) == [(False, b"spans")]
        assert alone.session_traces("s") == [row]
        assert alone.newest_traces(["s"], 5) == {"s": (1, [row])}
        assert alone.left_behind([T1]) == {T1: row}
        assert alone.responses.traces(["resp_1", "resp_2"], continued=False) == [row]
        assert alone.newest_results([T1.hex()])[T1.hex(), "trace.m"].id == "r1"
        later = decide(store, T2, "resp_2")
        assert alone.responses.traces(["resp_2"], continued=False) == [later], "no filter hides later commits"


def test_a_snapshot_hides_later_commits(store: Store) -> None:
    decide(store, T1, "resp_1")
    with closing(StoreReader(store.path)) as alone:
        with alone.snapshot():
            assert [each.trace_id for each in alone.session_traces("s")] == [T1]
            decide(store, T2, "resp_2")
            assert [each.trace_id for each in alone.session_traces("s")] == [T1]
            assert set(alone.decided([T1, T2])) == {T1}
        assert [each.trace_id for each in alone.session_traces("s")] == [T1, T2]


def test_importing_the_store_loads_no_analysis_or_scoring_module() -> None:
    code = "import sys, pandaeval_collector.store; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert "pandaeval_collector.store.reader" in loaded
    heavy = (
        "numpy",
        "pydantic",
        "pandaeval_otel.dialects",
        "pandaeval_collector.analysis",
        "pandaeval_collector.scoring",
    )
    assert [each for each in loaded if each.startswith(heavy)] == []
