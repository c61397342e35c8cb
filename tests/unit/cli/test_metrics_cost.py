"""``pandaeval metrics --cost``: each metric's share of the CPU time over the traces of a file."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.metric_cpu import EMBEDDING, Measured, MetricCpu
from pandaeval_collector.cli import app
from pandaeval_lab.cli.metrics import REST, CostsByUnit

_CAPTURES = Path(__file__).parents[2] / "golden" / "captures"


def _decided(**spans: int) -> Any:
    return SimpleNamespace(
        traces=[SimpleNamespace(trace_id=trace_id, spans=[None] * count) for trace_id, count in spans.items()]
    )


def test_a_row_tells_the_share_the_cost_of_a_span_and_of_a_unit() -> None:
    heard = CostsByUnit()
    heard.decided(_decided(a=10, b=2))
    for unit, seconds in (("a", 3e-6), ("b", 2e-6), ("a", 1e-6)):
        heard.spent(unit, [("trace.response", seconds)])
    heard.spent("s", [("session.agent_reliability", 12e-6)])
    rows = heard.rows(embedding=6e-6, whole=48e-6)
    dearest, response, embedding, rest = rows
    assert (dearest.metric, dearest.share, dearest.units) == ("session.agent_reliability", 0.25, 1)
    assert (dearest.worst_span, dearest.worst_trace) == (None, None)  # a session, and no trace
    assert (response.metric, response.units, response.worst_trace) == ("trace.response", 2, "b")
    assert [response.span, response.median, response.worst, response.worst_span] == pytest.approx([0.5, 3, 4, 1])
    assert [each.metric for each in (embedding, rest)] == [EMBEDDING, REST]
    assert [each.share for each in rows] == pytest.approx([12 / 48, 6 / 48, 6 / 48, 24 / 48])


def test_without_agents_traces_there_are_no_rows() -> None:
    assert CostsByUnit().rows(embedding=0.0, whole=1.0) == []


def test_the_command_tells_it_of_a_file() -> None:
    file = _CAPTURES / "pydantic_ai" / "good.otlp.jsonl"
    printed = CliRunner().invoke(app, ["metrics", "--cost", str(file), "--format", "json"])
    assert printed.exit_code == 0, printed.output
    rows = [json.loads(line) for line in printed.stdout.splitlines()]
    found = {row["metric"]: row for row in rows}
    assert {"trace.tool_loop", "trace.response", EMBEDDING, REST} <= found.keys()
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert all(row["median"] <= row["worst"] for row in rows if row["units"])


def test_a_metric_beside_it_is_refused() -> None:
    refused = CliRunner().invoke(app, ["metrics", "tool_loop", "--cost", "x"])
    assert refused.exit_code == 2
    assert "leave tool_loop out" in refused.output


def test_what_a_worker_took_is_added_to_what_was_taken_here() -> None:
    here, worker = MetricCpu(), MetricCpu()
    spent = Measured(worker, weight=1)
    spent.seconds.update({"trace.response": 0.5, "trace.tool_loop": 0.25})
    spent.end("t")
    here.add([("trace.response", 0.25)])
    here.add(worker.take())
    assert here.seconds() == {"trace.response": 0.75, "trace.tool_loop": 0.25}
    assert worker.take() == []
    assert here.values()["pandaeval.metric.cpu", (("pandaeval.metric", "trace.response"),)] == 0.75


def test_a_running_collector_measures_one_in_seventeen_and_a_listener_hears_of_each() -> None:
    cpu = MetricCpu()
    weights = [cpu.measure().weight for _ in range(34)]
    assert (weights[0], sum(weights), len([each for each in weights if each])) == (0, 34, 2)
    heard: list[Any] = []
    cpu.listener = lambda unit_id, spent: heard.append((unit_id, spent))
    assert cpu.measure().weight == 1
    spent = Measured(cpu, weight=3)
    spent.seconds["trace.response"] = 0.5
    spent.end("t")
    assert heard == [("t", [("trace.response", 0.5)])]
    assert cpu.seconds() == {"trace.response": 1.5}
