"""A topic for messages that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.kafka.client import deliver

if TYPE_CHECKING:
    from confluent_kafka import Message

_log = logging.getLogger(__name__)


class DeadLetters:
    """Writes unreadable messages to a topic. One thread at a time; connects at the first letter."""

    def __init__(self, settings: Mapping[str, object], topic: str, telemetry: Telemetry) -> None:
        self._settings, self._topic, self._telemetry = settings, topic, telemetry
        self._producer: Any = None

    def put(self, message: Message, why: str) -> None:
        """Writes a message to the topic and returns when the broker has it. Where it refuses, that is logged and
        counted: the message must not keep all that comes after it from being read."""
        from confluent_kafka import KafkaException, Producer

        where = f"{message.topic()}/{message.partition()}/{message.offset()}"
        headers = [("pandaeval.reason", why[:500].encode()), ("pandaeval.source", where.encode())]
        letter = {"key": message.key(), "value": message.value(), "headers": headers}
        try:
            if self._producer is None:
                self._producer = Producer(dict(self._settings))
            failure = deliver(self._producer, self._topic, [letter])
        except (KafkaException, BufferError) as error:
            failure = str(error)
        if failure:
            _log.error("message %s cannot be read (%s), nor put aside in %s (%s)", where, why, self._topic, failure)
        else:
            _log.warning("message %s cannot be read (%s) and was put aside in %s", where, why, self._topic)
        self._telemetry.add("pandaeval.log.messages", "dead", 1, "lost" if failure else "malformed")

    def close(self) -> None:
        """Closes the connection."""
        if self._producer is not None:
            self._producer.flush(1)
            self._producer = None
