"""Hands decided traces, as members of their sessions, to the collectors that share a Kafka topic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import zstandard

from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.kafka import KafkaExporter
from pandaeval_otel._proto.member_pb2 import Content, Member

_log = logging.getLogger(__name__)

Part = tuple[bool, bytes]


def with_contents(message: bytes, read: Callable[[bytes], Sequence[Part]], most: int) -> bytes:
    """Adds to a packed member what is stored of its trace (``read``, by trace id), where whoever scores its session may
    need it. Adds no more than ``most`` bytes."""
    member = Member.FromString(message)
    if not member.decided:
        return message
    try:
        parts = read(member.trace_id)
    except zstandard.ZstdError as error:
        _log.warning("the spans of trace %s were damaged and stay here (%s)", member.trace_id.hex(), error)
        return message
    if sum(len(request) for _, request in parts) > most:
        return message
    contents = [Content(request=request, logs=logs) for logs, request in parts]
    return message + Member(contents=contents).SerializeToString()


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
