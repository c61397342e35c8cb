"""Evaluation spans follow their trace's tail sampling decision."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.otelcol import BINARY, ConfiguredOtelcol, Otelcol, plain
from support.processors import until
from support.senders import GrpcSender

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py otelcol"),
]

_TRACES = 80
_SHARE = {"sampling_percentage: 10": "sampling_percentage: 40"}
_NO_CACHE = {
    "decision_cache: {sampled_cache_size: 500000, non_sampled_cache_size: 500000}": "",
    "num_traces: 50000": "num_traces: 10",
}


def test_failed_scores_keep_their_trace_if_they_arrive_before_the_sampling_decision(tmp_path: Path) -> None:
    """PandaEval is faster than the sampler."""
    kept, results = _sample(tmp_path, quiet="100ms", wait_s=12.0)
    first = [result for result in results if result["level"] == "trace" and result["revision"] == 1]
    bad = {result["trace_id"] for result in first if result["success"] is False}
    assert 0 < len(bad) < _TRACES
    assert bad <= kept.keys(), "every trace with a failed result must be kept"
    assert len(bad) < len(kept) < _TRACES, "some other traces must be kept, but not all"
    _assert_whole(kept)


def test_late_scores_follow_the_cached_sampling_decision(tmp_path: Path) -> None:
    """The sampler is faster and caches decisions."""
    small = {"num_traces: 50000": "num_traces: 10"}
    kept, results = _sample(tmp_path, quiet="5s", wait_s=1.0, changes=small)
    assert len({result["trace_id"] for result in results}) == _TRACES
    assert 0 < len(kept) < _TRACES
    _assert_whole(kept)


def test_late_scores_are_separated_from_their_trace_without_a_decision_cache(tmp_path: Path) -> None:
    kept, _ = _sample(tmp_path, quiet="5s", wait_s=1.0, changes=_NO_CACHE)
    assert any(not own or not evaluations for own, evaluations in map(_parts, kept.values()))


def _sample(
    folder: Path, quiet: str, wait_s: float, changes: dict[str, str] | None = None
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return backend spans by trace ID, and all results."""
    timing = {"decision_wait_after_root_received: 20s": f"decision_wait_after_root_received: {wait_s}s"}
    settings = {
        "PANDAEVAL_CLOSE__QUIET": quiet,
        "PANDAEVAL_CLOSE__IDLE": "20s",
        "PANDAEVAL_EXPORTERS__OTLP__METRICS__ENABLED": "false",
        "PANDAEVAL_EXPORTERS__OTLP__LOGS__ENABLED": "false",
    }
    with Otelcol(folder / "backend") as backend, CollectorProcess(folder / "collector", settings) as collector:
        backend.start()
        where = {"BACKEND_ENDPOINT": f"127.0.0.1:{backend.grpc_port}", "PANDAEVAL_ENDPOINT": collector.grpc}
        replaced = timing | _SHARE | (changes or {})
        with ConfiguredOtelcol("tail_sampling.yaml", folder / "sampler", where, replaced) as sampler:
            collector.settings["PANDAEVAL_EXPORTERS__OTLP__ENDPOINT"] = sampler.results
            collector.start()
            door, composer = GrpcSender(sampler.grpc), Composer(21)
            until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "the sampler's start")
            ids = {_send(door, composer.trace()) for _ in range(_TRACES)}
            door.close()
            collector.until(lambda: {each["trace_id"] for each in collector.results()} == ids, "scored")
            collector.until(collector.at_rest, "at rest, with all results sent")
            _until_calm(backend, wait_s + 3.0)
            results = collector.results()
    found = defaultdict(list)
    for span in backend.items("traces"):
        if span["traceId"] in ids:
            found[span["traceId"]].append(span)
    return found, results


def _send(door: GrpcSender, trace: MadeTrace) -> str:
    """Send under a random trace ID; return it."""
    trace_id = hashlib.blake2b(trace.trace_id, digest_size=16).digest()
    for span in trace.spans:
        span.trace_id = trace_id
    assert door.send(trace.request()).acknowledged
    return trace_id.hex()


def _until_calm(backend: Otelcol, seconds: float) -> None:
    """Wait until no span arrives for a while."""
    number, since = -1, time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.5)
        now = sum(1 for _ in backend.items("traces"))
        if now != number:
            number, since = now, time.monotonic()


def _parts(spans: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the numbers of application and evaluation spans."""
    evaluations = sum(span["scope"] == "pandaeval.evaluation" for span in spans)
    return len(spans) - evaluations, evaluations


def _assert_whole(kept: dict[str, list[dict[str, Any]]]) -> None:
    for trace_id, spans in kept.items():
        own, evaluations = _parts(spans)
        assert own, f"scores without their trace {trace_id}"
        assert evaluations, f"the trace {trace_id} without its scores"
        ids = {span["spanId"] for span in spans}
        assert all(span["parentSpanId"] in ids for span in spans if span["scope"] == "pandaeval.evaluation")
        assert all(plain(event["attributes"]) for span in spans for event in span.get("events", ()))
