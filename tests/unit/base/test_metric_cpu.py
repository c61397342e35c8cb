"""CPU time of metrics: summed over workers, and measured on one unit in seventeen."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.base.metric_cpu import Measured, MetricCpu


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
