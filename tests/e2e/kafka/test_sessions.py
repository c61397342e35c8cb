"""Three collectors share spans and sessions, and give the results of one."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess
from support.kafka import Broker
from support.kafka_workers import QUICK, messages, newest, scores, sharing_sessions, worker
from support.made_traces import Composer, MadeTrace
from support.processors import until
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_three_collectors_with_shared_sessions_give_the_results_of_one(broker: Broker, tmp_path: Path) -> None:
    traces = _traces(88, 41)
    groups = _begin(broker, "quiet", traces)
    with contextlib.ExitStack() as stack:
        workers = _three(stack, broker, "quiet", tmp_path)
        for group in groups:
            broker.produce("quiet", group)
        results = _all_done(broker, "quiet", sum(map(len, groups)), traces, workers)
    assert results == _by_one(tmp_path / "one", traces)


def test_sessions_are_scored_as_by_one_collector_if_partitions_move(broker: Broker, tmp_path: Path) -> None:
    traces = _traces(180, 43)
    parts = _begin(broker, "moved", traces)
    with contextlib.ExitStack() as stack:
        a, b, c = workers = _three(stack, broker, "moved", tmp_path)
        broker.produce("moved", parts[0])
        until(lambda: any(each.results() for each in workers), "some scored", 60)
        a.kill()
        broker.produce("moved", parts[1])
        assert b.process is not None
        b.process.send_signal(signal.SIGSTOP)
        time.sleep(10)
        b.process.send_signal(signal.SIGCONT)
        d = stack.enter_context(_worker(tmp_path, broker, "d", "moved"))
        d.launch()
        broker.produce("moved", parts[2])
        assert c.stop() == 0, c.log()
        broker.produce("moved", parts[3])
        a.launch()
        results = _all_done(broker, "moved", sum(map(len, parts)), traces, (a, b, d))
    assert results == _by_one(tmp_path / "one", traces)


def _traces(number: int, seed: int) -> list[MadeTrace]:
    composer = Composer(seed)
    return [composer.trace() for _ in range(number)]


def _begin(broker: Broker, name: str, traces: Sequence[MadeTrace]) -> list[list[tuple[bytes, bytes]]]:
    """Create the topics; return four groups of messages."""
    for topic, partitions in ((name, 6), (f"{name}.members", 6), (f"{name}.scores", 3)):
        broker.create(topic, partitions)
    size = len(traces) // 4
    return [list(messages(traces[at : at + size], parts=2)) for at in range(0, len(traces), size)]


def _three(
    stack: contextlib.ExitStack, broker: Broker, name: str, folder: Path
) -> tuple[CollectorProcess, CollectorProcess, CollectorProcess]:
    a, b, c = (stack.enter_context(_worker(folder, broker, id_, name)) for id_ in "abc")
    for each in (a, b, c):
        each.start()
    until(lambda: _owned((a, b, c)) == 12, "all partitions of both topics taken", 200)
    return a, b, c


def _worker(folder: Path, broker: Broker, id_: str, name: str) -> CollectorProcess:
    # Longer than any delay of spans. Otherwise a session is closed before it moves, and continues in parts.
    settings = sharing_sessions(name) | {"PANDAEVAL_SESSION__IDLE": "30s"}
    return worker(folder, broker, id_, name, f"{name}.scores", settings)


def _owned(workers: Iterable[CollectorProcess]) -> int:
    counts = [each.counts() for each in workers]
    return sum(each["log_partitions", "taken", ""] - each["log_partitions", "released", ""] for each in counts)


def _all_done(
    broker: Broker,
    name: str,
    sent: int,
    traces: Sequence[MadeTrace],
    workers: Sequence[CollectorProcess],
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Wait for Kafka's commits; return current results."""
    group = f"readers-of-{name}"
    workers[0].until(lambda: sum(broker.committed(group, name).values()) == sent, "done with spans", 300)

    def members_done() -> bool:
        held = len(broker.everything(f"{name}.members"))
        return sum(broker.committed(f"{group}-sessions", f"{name}.members").values()) == held

    workers[0].until(members_done, "done with sessions", 300)
    for each in workers:
        each.until(each.ready, "ready", 120)
        assert each.gauge("accounting_residual") == 0
        assert each.gauge("traces_open") == 0
    found = scores(broker, f"{name}.scores")
    assert {each["trace_id"] for each in found} >= {trace.trace_id.hex() for trace in traces}
    return newest(found)


def _by_one(folder: Path, traces: Sequence[MadeTrace]) -> dict[tuple[str, str], tuple[Any, ...]]:
    sessions = {trace.session for trace in traces if trace.session is not None}
    with CollectorProcess(folder, QUICK) as one:
        one.start()
        with contextlib.closing(GrpcSender(one.grpc)) as door:
            for trace in traces:
                assert door.send(trace.request()).acknowledged

        def done() -> bool:
            scored_sessions = {each["session_id"] for each in one.results() if each["level"] == "session"}
            return scored_sessions >= sessions and one.at_rest() and one.gauge("traces_open") == 0

        one.until(done, "scored", 120)
        return newest(one.results())
