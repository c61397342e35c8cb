"""A collector stops even if the broker does not respond."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.kafka import Broker
from support.kafka_workers import messages, sharing_sessions, worker
from support.made_traces import Composer

pytestmark = pytest.mark.e2e


def test_a_collector_stops_while_the_broker_is_paused(broker: Broker, tmp_path: Path) -> None:
    for topic in ("asleep", "asleep.members", "asleep.scores"):
        broker.create(topic, 4)
    composer = Composer(31)
    with worker(tmp_path, broker, "one", "asleep", "asleep.scores", sharing_sessions("asleep")) as collector:
        collector.start()
        broker.produce("asleep", list(messages([composer.trace() for _ in range(20)])))
        collector.until(lambda: collector.counts()["log_messages", "read", ""] == 20, "read")
        assert all(0 <= value < 60 for _, value in collector.series("log_silence_seconds"))
        assert len(collector.series("log_silence_seconds")) == 2
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            assert collector.stop() == 0, collector.log()
            assert "was not left" in collector.log()
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        collector.start()
        collector.until(collector.at_rest, "at rest")
        assert len({each["trace_id"] for each in collector.results() if each["level"] == "trace"}) == 20
