"""Three collectors share a topic during kills, pauses and joins."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess
from support.kafka import Broker
from support.kafka_workers import by_id, messages, scores, worker
from support.made_traces import Composer
from support.processors import until
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

_ACROSS = ("trace.loop_detection",)
"""Metrics that read other traces of the session."""


def test_every_trace_is_scored_once_while_collectors_join_die_and_pause(broker: Broker, tmp_path: Path) -> None:
    broker.create("shared", 12)
    broker.create("shared.scores", 3)
    composer = Composer(35)
    traces = [composer.trace() for _ in range(180)]
    # The parts of a trace follow each other quickly, as from one agent. No pause between them completes the trace.
    first, second, third, fourth, fifth = (list(messages(traces[at : at + 36], parts=2)) for at in range(0, 180, 36))
    sent = len([*first, *second, *third, *fourth, *fifth])
    with contextlib.ExitStack() as stack:
        a, b, c, d = (stack.enter_context(worker(tmp_path, broker, name, "shared", "shared.scores")) for name in "abcd")
        for each in (a, b, c):
            each.start()
        until(lambda: _owned(a, b, c) == 12, "all partitions taken", 200)
        broker.produce("shared", first)
        a.kill()
        broker.produce("shared", second)
        until(lambda: _owned(b, c) == 12, "the partitions of the dead one taken", 200)
        assert b.process is not None
        b.process.send_signal(signal.SIGSTOP)
        broker.produce("shared", third)
        time.sleep(10)
        b.process.send_signal(signal.SIGCONT)
        d.start()
        broker.kill()
        broker.start()
        broker.produce("shared", fourth)
        a.start()
        broker.produce("shared", fifth)
        workers = (a, b, c, d)
        wanted = {trace.trace_id.hex() for trace in traces}
        until(lambda: {r["trace_id"] for each in workers for r in each.results()} >= wanted, "all scored", 400)
        group = "readers-of-shared"
        a.until(lambda: sum(broker.committed(group, "shared").values()) == sent, "done in Kafka's eyes", 300)
        for each in workers:
            assert each.gauge("accounting_residual") == 0
            assert each.gauge("traces_open") == 0
        found = scores(broker, "shared.scores")
    assert {each["level"] for each in found} == {"trace", "turn"}, "no collector has all traces of a session"
    own = by_id(each for each in found if f"trace.{each['metric']}" not in _ACROSS)
    contents = defaultdict(set)
    for id_, (unit, metric, *_) in own.items():
        contents[unit, metric].add(id_)
    assert all(len(ids) == 1 for ids in contents.values()), "a trace was scored under two contents"
    assert own == by_id(_by_otlp(tmp_path, broker, traces))


def _owned(*workers: CollectorProcess) -> int:
    counts = [each.counts() for each in workers]
    return sum(each["log_partitions", "taken", ""] - each["log_partitions", "released", ""] for each in counts)


def _by_otlp(folder: Path, broker: Broker, traces: list[Any]) -> list[dict[str, Any]]:
    broker.create("shared.by_nobody", 1)
    broker.create("shared.by_nobody.scores")
    with worker(folder, broker, "otlp", "shared.by_nobody", "shared.by_nobody.scores") as collector:
        collector.start()
        with contextlib.closing(GrpcSender(collector.grpc)) as door:
            for trace in traces:
                assert door.send(trace.request()).acknowledged
        wanted = {trace.trace_id.hex() for trace in traces}
        collector.until(lambda: {each["trace_id"] for each in collector.results()} >= wanted, "scored", 120)
        return [
            each
            for each in collector.results()
            if each["level"] != "session" and f"trace.{each['metric']}" not in _ACROSS
        ]
