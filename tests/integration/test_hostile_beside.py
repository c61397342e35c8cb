"""Very slow traces lose only their own results."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.senders import GrpcSender, HttpSender, SpanSender

SLOW = '''
from __future__ import annotations

import re
import time

from pandaeval_collector import Finding, Metric, Score, TraceContext
from pandaeval_otel import Trace

BLANKS = re.compile(r"\\s*x")


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    """Takes for ever on three kinds of runs: in Python, asleep, and in C."""
    while trace.agent == "spins":
        pass
    if trace.agent == "sleeps":
        time.sleep(3600)
    if trace.agent == "pumps":
        BLANKS.search(" " * 2_000_000)
    return Score(1.0, "not hostile")


METRIC = Metric(level="trace", name="very_slow", kind="code", version="1", threshold=0.5, question="Is it slow?",
                needs="nothing", evaluate=_evaluate)
'''
LIMITS = {"PANDAEVAL_LINE__TIMEOUT": "6s"}
DONE_S = 280.0
_ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(400)
SLOWLY = pytest.mark.slow
"""A search in C blocks more than Python code does."""


def _hostile(agent: str, traces: Sequence[MadeTrace]) -> list[MadeTrace]:
    """Return traces on which a metric hangs."""
    for trace in traces:
        for span in trace.spans:
            _set(span, "gen_ai.agent.name", agent)
    return [*traces]


def _set(span: Span, key: str, value: str) -> None:
    for pair in span.attributes:
        if pair.key == key:
            pair.value.string_value = value
            return
    span.attributes.add(key=key).value.string_value = value


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("agent", ["pumps", "spins", "sleeps"])
def test_a_trace_that_never_finishes_loses_only_its_own_results(agent: str, times: int, tmp_path: Path) -> None:
    module = tmp_path / "slow_metric.py"
    module.write_text(SLOW)
    composer = Composer(5)
    hostile = _hostile(agent, [composer.trace(4) for _ in range(times)])
    before, after = ([composer.trace(4) for _ in range(20)] for _ in range(2))
    settings = {**LIMITS, "PANDAEVAL_METRICS__MODULES": f"[{module}]"}
    with CollectorProcess(tmp_path, settings, own_children=True).start() as collector:
        assert collector.process is not None
        front = collector.process.pid
        grpc, http = GrpcSender(collector.grpc), HttpSender(collector.http)
        for trace in (*before[:10], *hostile, *before[10:]):
            _send(collector, grpc, trace)
        collector.until(lambda: bool(_of(collector, hostile)), "set aside", DONE_S)
        for trace in after:
            _send(collector, http, trace)
            assert urllib.request.urlopen(f"{collector.http}/api/v1/overview", timeout=60).status == 200
            assert collector.ready()
        collector.until(lambda: len(_of(collector, after)) == len(after) and collector.at_rest(), "at rest", DONE_S)
        assert collector.running()
        assert collector.process.pid == front
        assert collector.gauge("accounting_residual") == 0
        results = collector.results()
        grpc.close()
        http.close()
        assert collector.stop() == 0
    for trace in (*before, *after):
        found = {each["metric"]: each for each in results if each["trace_id"] == trace.trace_id.hex()}
        assert found["very_slow"]["outcome"] == "scored"
        assert "took too long" not in str(found)
    for trace in hostile:
        found = {each["metric"]: each for each in results if each["trace_id"] == trace.trace_id.hex()}
        assert (found["very_slow"]["outcome"], found["very_slow"]["why"]) == ("unscored", "timeout")
        if agent != "pumps":  # "pumps" kills its process; else the metric is named and earlier results stay
            assert "trace.very_slow" in found["very_slow"]["reason"]
            assert found["tool_loop"]["why"] != "timeout"


@pytest.mark.slow
def test_the_quick_proof_shows_that_two_hostile_inputs_block_no_other_trace(tmp_path: Path) -> None:
    """``tests/lab/proofs/beside.py`` tries all inputs."""
    ledger = tmp_path / "ledger.jsonl"
    script = [
        sys.executable,
        str(_ROOT / "tests/lab/proofs/beside.py"),
        "--quick",
        "--seed",
        "99",
        "--ledger",
        str(ledger),
    ]
    subprocess.run(script, check=False, timeout=380)
    trials = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert len(trials) == 2
    for trial in trials:
        assert trial["decisions"]["decided"] == trial["decisions"]["traces"] > 0
        assert trial["hostile"] | {"without": 0, "traces": 1} == trial["hostile"]
        assert (trial["restarts"], trial["line_restarts"], trial["refused"]) == (0, 0, [])


def _send(collector: CollectorProcess, door: SpanSender, trace: MadeTrace) -> None:
    collector.until(lambda: door.send(trace.request()).acknowledged, "answering")


def _of(collector: CollectorProcess, traces: Sequence[MadeTrace]) -> set[str]:
    return {each["trace_id"] for each in collector.results()} & {trace.trace_id.hex() for trace in traces}
