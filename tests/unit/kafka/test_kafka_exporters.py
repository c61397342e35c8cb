"""Kafka messages and their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pandaeval_collector.exporters import RetryLaterError
from pandaeval_collector.kafka.exporters import KafkaExporter
from pandaeval_collector.store import OutboxRow
from pandaeval_otel._proto.member_pb2 import Member


class Broker:
    """A fake producer. ``refuses``: error per message."""

    def __init__(self, refuses: str = "", unanswered: int = 0) -> None:
        self.written: list[tuple[str, bytes, str]] = []
        self._refuses, self._unanswered = refuses, unanswered

    def produce(self, topic: str, value: bytes, key: str, on_delivery: Callable[[Any, Any], None]) -> None:
        self.written.append((topic, value, key))
        on_delivery(self if self._refuses else None, None)

    def str(self) -> str:
        return self._refuses

    def poll(self, _: float) -> None:
        pass

    def recover(self) -> None:
        self._refuses, self._unanswered = "", 0

    def flush(self, _: float) -> int:
        return self._unanswered


def _message(body: bytes) -> tuple[str, bytes]:
    return Member.FromString(body).session_id, body + b"more"


def _rows(*sessions: str) -> list[OutboxRow]:
    bodies = [Member(trace_id=bytes(16), session_id=each).SerializeToString() for each in sessions]
    return [OutboxRow(number, body) for number, body in enumerate(bodies, 1)]


async def test_messages_are_completed_and_keyed_by_session() -> None:
    broker, rows = Broker(), _rows("a", "b")
    sent = await KafkaExporter(broker, "eval.traces", _message).export(rows)
    assert (sent.rows, sent.dropped) == (2, {})
    assert broker.written == [("eval.traces", row.body + b"more", key) for row, key in zip(rows, "ab", strict=True)]


@pytest.mark.parametrize("broker", [Broker(refuses="too large"), Broker(unanswered=1)])
async def test_messages_refused_or_unanswered_by_the_broker_are_sent_again(broker: Broker) -> None:
    exporter, rows = KafkaExporter(broker, "eval.traces", _message), _rows("a")
    with pytest.raises(RetryLaterError):
        await exporter.export(rows)
    broker.recover()
    assert (await exporter.export(rows)).rows == 1
    assert broker.written == [("eval.traces", rows[0].body + b"more", "a")] * 2
