"""Collector processes: stop, restart, start errors, limits."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.store.connection import PAGE_BYTES
from pandaeval_lab.replay.files import Request
from support.collector import CollectorProcess, open_chunks, snapshot
from support.kills import Results, differences, standing_results, uninterrupted
from support.made_traces import Composer, MadeTrace
from support.oracle import Oracle, problems_of
from support.senders import Answer, GrpcSender, HttpSender
from support.sink import Sink
from support.stored import exported_problems

SLOW = {"PANDAEVAL_CLOSE__QUIET": "60s", "PANDAEVAL_CLOSE__IDLE": "60s", "PANDAEVAL_SESSION__IDLE": "60s"}
Make = Callable[..., CollectorProcess]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Create collectors that end with the test."""
    with ExitStack() as stack:

        def one(settings: Mapping[str, str] | None = None, folder: str = "0") -> CollectorProcess:
            return stack.enter_context(CollectorProcess(tmp_path / folder, settings))

        yield one


def send(collector: CollectorProcess, trace: MadeTrace, spans: tuple[Span, ...] | None = None) -> Answer:
    with closing(GrpcSender(collector.grpc)) as door:
        return door.send(trace.request(spans))


def composed(number: int, seed: int = 1, spans: int = 5) -> list[MadeTrace]:
    composer = Composer(seed)
    return [composer.trace(spans) for _ in range(number)]


def as_file(traces: list[MadeTrace]) -> Results:
    return uninterrupted(Request(False, trace.request().SerializeToString()) for trace in traces)


class TestStoppingAndStarting:
    def test_sigterm_keeps_open_traces_and_a_restart_resumes_them(self, make: Make) -> None:
        traces = composed(6)
        collector = make(SLOW)
        collector.fresh = True
        collector.start()
        collector.fresh = False
        for trace in traces[:4]:
            assert send(collector, trace) == Answer(acknowledged=True)
        assert send(collector, traces[4], traces[4].spans[1:]).acknowledged
        assert collector.stop() == 0
        assert "store.on_shutdown decides about incomplete traces" in collector.log()
        assert collector.results() == []
        with snapshot(collector.data, collector.folder) as database:
            assert {trace_id for trace_id, _ in open_chunks(database)} == {trace.trace_id for trace in traces[:5]}

        collector.settings |= {"PANDAEVAL_CLOSE__QUIET": "300ms", "PANDAEVAL_CLOSE__IDLE": "1s"}
        collector.start()
        assert "resumed 5 open traces" in collector.log()
        assert send(collector, traces[4], traces[4].spans[:1]).acknowledged
        assert send(collector, traces[5]).acknowledged
        collector.until(lambda: collector.counts()["traces", "decided", "root_ended"] >= 6, "done with six traces")
        assert collector.stop() == 0
        assert not any(each["level"] == "session" for each in collector.results())

        collector.settings |= {"PANDAEVAL_SESSION__IDLE": "500ms"}
        collector.start()
        collector.until(collector.at_rest, "at rest")
        assert differences(standing_results(collector), as_file(traces)) == []

    def test_a_stop_under_load_loses_no_spans_and_rejects_none_permanently(self, make: Make) -> None:
        collector = make()
        collector.launch()
        with Oracle(collector.grpc, collector.http, seed=3) as oracle:
            for expected in (50, 150):
                collector.until(lambda enough=expected: len(oracle.told.acknowledged) > enough, "busy")  # type: ignore[misc]
                assert collector.stop() == 0, collector.log()
                with snapshot(collector.data, collector.folder) as database:
                    assert problems_of(oracle.told, database) == []
                    assert exported_problems(database, collector.results_file) == []
                collector.launch()
        assert oracle.told.refused == []

    @pytest.mark.slow
    def test_a_scored_trace_can_get_a_new_revision_after_a_restart(self, make: Make) -> None:
        [trace] = composed(1)
        collector = make().start()
        assert send(collector, trace, trace.spans[1:]).acknowledged
        collector.until(collector.at_rest, "at rest")
        assert collector.stop() == 0
        collector.start()
        assert send(collector, trace).acknowledged
        assert collector.counts()["spans", "duplicate", ""] == len(trace.spans) - 1
        collector.until(lambda: 2 in {each["revision"] for each in collector.results()}, "decided again")
        collector.until(collector.at_rest, "at rest")
        assert differences(standing_results(collector), as_file([trace])) == []


class TestLateSpans:
    def test_late_spans_make_a_new_revision(self, make: Make) -> None:
        [trace] = composed(1)
        collector = make().start()
        assert send(collector, trace, trace.spans[1:]).acknowledged
        collector.until(lambda: bool(collector.results()), "done with it")
        assert send(collector, trace, trace.spans[:1]) == Answer(acknowledged=True)
        collector.until(lambda: 2 in {each["revision"] for each in collector.results()}, "done with it again")
        again = [each for each in collector.results() if each["revision"] == 2 and each["level"] == "trace"]
        assert {each["late_spans"] for each in again} == {1}

    @pytest.mark.slow
    def test_late_spans_are_rejected_and_counted_with_policy_count(self, make: Make) -> None:
        [trace] = composed(1)
        collector = make({"PANDAEVAL_LATE__POLICY": "count"}).start()
        assert send(collector, trace, trace.spans[1:]).acknowledged
        collector.until(lambda: bool(collector.results()), "done with it")
        answer = send(collector, trace, trace.spans)
        assert (answer.acknowledged, answer.rejected) == (True, 1)
        assert "scored for good" in answer.message
        assert collector.counts()["spans", "rejected", "late"] == 1
        collector.until(collector.at_rest, "at rest")
        assert {each["revision"] for each in collector.results()} == {1}


class TestStartProblems:
    def test_start_fails_if_the_data_directory_is_in_use(self, make: Make) -> None:
        first = make().start()
        second = make({"PANDAEVAL_DATA": str(first.data)}, folder="1")
        second.launch()
        assert second.wait(60) == 2
        assert f"{first.data} is in use by another collector" in second.log()
        assert "Traceback" not in second.log()
        assert first.ready()

    @pytest.mark.parametrize(
        "key",
        ["SERVER__GRPC", *(pytest.param(f"SERVER__{name}", marks=pytest.mark.slow) for name in ("HTTP", "HEALTH"))],
    )
    def test_start_fails_if_a_port_is_in_use_and_names_the_setting(self, make: Make, key: str) -> None:
        collector = make()
        taken = collector.settings[f"PANDAEVAL_{key}"]
        with socket.create_server(("127.0.0.1", int(taken.rpartition(":")[2]))):
            collector.launch()
            assert collector.wait(60) == 2
        assert taken in collector.log()
        assert key.lower().replace("__", ".") in collector.log()
        assert "Traceback" not in collector.log()

    def test_start_fails_if_the_data_directory_is_a_file(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("something else")
        collector = make({"PANDAEVAL_DATA": str(tmp_path / "file")})
        collector.launch()
        assert collector.wait(60) == 2
        assert str(tmp_path / "file") in collector.log()
        assert "Traceback" not in collector.log()

    def test_a_damaged_store_is_quarantined_and_the_collector_starts(self, make: Make) -> None:
        traces = composed(20)
        collector = make(SLOW).start()
        for trace in traces:
            assert send(collector, trace).acknowledged
        assert collector.stop() == 0
        file = collector.data / "pandaeval.db"
        content = bytearray(file.read_bytes())
        content[20_000:60_000] = random.Random(1).randbytes(40_000)
        file.write_bytes(content)
        collector.start()
        assert "the store was damaged" in collector.log()
        assert collector.counts()["store_errors", "put_aside", ""] == 1
        assert len(list(collector.data.glob("pandaeval.db.damaged-*"))) >= 1
        assert send(collector, traces[0]).acknowledged

    @pytest.mark.slow
    def test_a_large_store_with_unreadable_open_traces_is_quarantined(self, make: Make) -> None:
        collector = make(SLOW).start()
        for trace in composed(20):
            assert send(collector, trace).acknowledged
        assert collector.stop() == 0
        file = collector.data / "pandaeval.db"
        os.truncate(file, 65 << 20)
        with closing(sqlite3.connect(file)) as store:
            (root,) = store.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").fetchone()
        with file.open("r+b") as content:
            content.seek((root - 1) * PAGE_BYTES)
            content.write(b"\xff" * PAGE_BYTES)
        collector.start()
        assert "it was put aside" in collector.log()
        assert collector.counts()["store_errors", "put_aside", ""] == 1


class TestLimits:
    def test_spans_over_the_disk_budget_are_refused_until_space_is_free(self, make: Make) -> None:
        collector = make({"PANDAEVAL_STORE__MAX_BYTES": "2MiB", "PANDAEVAL_LATE__WINDOW": "1s"}).start()
        chance, traces, refused = random.Random(1), composed(5), 0
        deadline = time.monotonic() + 60
        with closing(GrpcSender(collector.grpc)) as door:
            for trace in traces:
                trace.spans[0].attributes.add(key="noise").value.string_value = chance.randbytes(400_000).hex()
                while not (answer := door.send(trace.request())).acknowledged:
                    assert not answer.refused
                    assert "store.max_bytes" in answer.message
                    assert time.monotonic() < deadline, collector.log()
                    refused += 1
                    time.sleep(0.05)
        assert refused > 0
        collector.until(collector.at_rest, "at rest")
        assert collector.counts()["spans", "stored", ""] == sum(len(trace.spans) for trace in traces)
        scored = {each["trace_id"] for each in collector.results() if each["metric"] == "coherence"}
        assert scored == {trace.trace_id.hex() for trace in traces}

    @pytest.mark.slow
    def test_a_huge_trace_does_not_block_other_traces(self, make: Make) -> None:
        collector = make({"PANDAEVAL_CLOSE__MAX_SPANS": "10000"}).start()
        huge = Composer(9).trace(50_000)
        others = composed(30, seed=10)
        rejected = 0
        with closing(GrpcSender(collector.grpc)) as door, closing(HttpSender(collector.http)) as other_door:
            for number in range(100):
                answer = door.send(huge.request(huge.spans[number * 500 : number * 500 + 500]))
                assert answer.acknowledged
                rejected += answer.rejected
                if number < len(others):
                    assert other_door.send(others[number].request()) == Answer(acknowledged=True)
        assert rejected == 40_000
        collector.until(collector.at_rest, "at rest")
        counts = collector.counts()
        assert (counts["spans", "rejected", "late"], counts["traces", "decided", "span_limit"]) == (40_000, 1)
        scored = {each["trace_id"] for each in collector.results() if each["metric"] == "coherence"}
        assert {trace.trace_id.hex() for trace in others} <= scored
        assert {each["trigger"] for each in collector.results() if each["trace_id"] == huge.trace_id.hex()} <= {
            "span_limit",
            "idle",  # results of its session
        }

    def test_the_collector_ignores_its_own_output(self, make: Make) -> None:
        with Sink() as sink:
            collector = make({"PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": sink.endpoint}).start()
            for trace in composed(5):
                assert send(collector, trace).acknowledged
            collector.until(collector.at_rest, "at rest")
            results = len(collector.results())
            with closing(GrpcSender(collector.grpc)) as door:
                given = list(sink.requests)
                assert {type(request).__name__ for request in given} == {
                    "ExportTraceServiceRequest",
                    "ExportLogsServiceRequest",
                }
                for request in given:
                    assert door.send(request) == Answer(acknowledged=True)
            counts = collector.counts()
            assert counts["logs", "own_output", ""] == results
            assert counts["spans", "own_output", ""] > 0
            assert collector.at_rest()
            assert len(collector.results()) == results
