"""Hands decided traces, as members of their sessions, to the collectors that share a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.kafka import KafkaExporter
from pandaeval_otel._proto.member_pb2 import Member


class ToTopic(KafkaExporter):
    """Exports members to a topic, keyed by the ids of sessions. ``complete`` adds to an encoded member, just before it
    is sent, what goes along with it."""

    name = "sessions"
    source = MEMBERS

    def __init__(self, made: Any, topic: str, complete: Callable[[bytes], bytes]) -> None:
        super().__init__(made, topic)
        self._complete = complete

    def message(self, body: bytes) -> tuple[str, bytes]:
        return Member.FromString(body).session_id, self._complete(body)
