"""Traces that kill the process that scores them."""

from __future__ import annotations

import contextlib
import gzip
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from typer.testing import CliRunner

from pandaeval_collector.cli._app import app
from pandaeval_collector.store import Chunk, Store
from pandaeval_lab.replay.files import Input
from pandaeval_otel.normal.evidence import Evidence, gather
from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.senders import GrpcSender

EMPTY_EVENT = b"\x5a\x00"
PEAK = 400 << 20
"""Maximum memory of a collector with such a trace, in bytes."""


def composed(number: int) -> list[MadeTrace]:
    composer = Composer(1)
    return [composer.trace(5) for _ in range(number)]


def with_events(number: int) -> bytes:
    """Return a span with many empty events."""
    head = Span(trace_id=b"p" * 16, span_id=b"poison__", name="invoke_agent x", start_time_unix_nano=10**18)
    span = head.SerializeToString() + EMPTY_EVENT * number
    for tag in (0x12, 0x12, 0x0A):
        size, left = bytearray(), len(span)
        while left > 0x7F:
            size.append(left & 0x7F | 0x80)
            left >>= 7
        span = bytes((tag, *size, left)) + span
    return span


def send(collector: CollectorProcess, traces: list[MadeTrace]) -> None:
    door = GrpcSender(collector.grpc)
    for trace in traces:
        assert door.send(trace.request()).acknowledged
    door.close()


def peak(collector: CollectorProcess) -> int:
    assert collector.process is not None
    status = Path(f"/proc/{collector.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def spans_of(collector: CollectorProcess, trace: MadeTrace, file: Path) -> Evidence:
    """Return the spans of a trace, exported by the command."""
    done = CliRunner().invoke(
        app,
        ["store", "export", "--trace", trace.trace_id.hex(), "--output", str(file)],
        env={"PANDAEVAL_DATA": str(collector.data)},
    )
    assert done.exit_code == 0, done.output
    return gather((request.logs, request.data) for request in Input(str(file)).requests())


def scored(collector: CollectorProcess, trace: MadeTrace) -> bool:
    found = [each for each in collector.results() if each["trace_id"] == trace.trace_id.hex()]
    return any(each["outcome"] in ("scored", "assumed") for each in found)


@pytest.mark.slow  # fast variant: tests/unit/wire/test_bounds.py
def test_a_stored_span_with_twelve_million_events_gets_results_in_bounded_memory(tmp_path: Path) -> None:
    collector = CollectorProcess(tmp_path)
    with collector:
        store = Store(collector.data)
        chunk = Chunk(store.next_chunk_id(), b"p" * 16, False, 1, 10**18, with_events(12_000_000))
        store.append([chunk]).result()
        store.close()
        collector.start()
        [neighbour] = composed(1)
        send(collector, [neighbour])
        collector.until(lambda: collector.at_rest() and scored(collector, neighbour), "at rest", 120)
        assert any(each["trace_id"] == (b"p" * 16).hex() for each in collector.results())
        assert peak(collector) < PEAK
        assert collector.counts()["traces", "failed", "TooMuchError"] == 0


@pytest.mark.slow
def test_an_http_request_with_many_events_does_not_affect_other_traces(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path).start() as collector:
        request = urllib.request.Request(
            f"{collector.http}/v1/traces",
            gzip.compress(with_events(1_500_000)),
            {"content-type": "application/x-protobuf", "content-encoding": "gzip"},
        )
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=60).close()
        assert not collector.counts()["requests", "internal_error", "http"]
        [neighbour] = composed(1)
        send(collector, [neighbour])
        collector.until(lambda: collector.at_rest() and scored(collector, neighbour), "at rest", 120)


def test_a_trace_that_kills_its_worker_is_quarantined_and_the_collector_continues(tmp_path: Path) -> None:
    deadly, *neighbours = composed(6)
    kill = f"over_trace={deadly.trace_id.hex()}:1"
    collector = CollectorProcess(tmp_path, {"PANDAEVAL_FAIL_POINT": kill}, own_children=True)
    with collector:
        collector.start()
        send(collector, [deadly, *neighbours])
        collector.until(lambda: collector.at_rest() and scored(collector, neighbours[-1]), "at rest", 120)
        assert all(scored(collector, each) for each in neighbours)
        aside = [each for each in collector.results() if each["trace_id"] == deadly.trace_id.hex()]
        assert {(each["outcome"], each["why"]) for each in aside} == {("unscored", "metric_error")}
        assert "worker_ended" in aside[0]["reason"]
        assert collector.counts()["traces", "failed", "worker_ended"] == 1
        assert collector.gauge("accounting_residual") == 0
        assert collector.stop() == 0
        kept = spans_of(collector, deadly, tmp_path / "deadly.pb")
        assert {span.span_id for span in kept.spans} == {span.span_id.hex() for span in deadly.spans}


@pytest.mark.slow
def test_repeated_kills_of_the_collector_quarantine_no_trace(tmp_path: Path) -> None:
    [trace] = composed(1)
    with CollectorProcess(tmp_path) as collector:
        collector.start()
        send(collector, [trace])
        collector.kill()
        for point in ("before_decide:1", "after_decide:1", "before_decide:1"):
            collector.launch(PANDAEVAL_FAIL_POINT=point)
            assert collector.wait(60) == -9
        collector.start()
        collector.until(lambda: collector.at_rest() and scored(collector, trace), "at rest", 60)
        assert not [each for each in collector.results() if each["why"] == "metric_error"]
        assert not [name for name, outcome, _ in collector.counts() if (name, outcome) == ("traces", "failed")]
