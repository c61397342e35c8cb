"""Messages that cannot be read, put aside in a topic of their own with the reason."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.telemetry import Telemetry

if TYPE_CHECKING:
    from confluent_kafka import Message

_log = logging.getLogger(__name__)
_PATIENCE_S = 25.0


class DeadLetters:
    """Writes to one topic. One thread at a time; it connects over the first letter."""

    def __init__(self, settings: Mapping[str, object], topic: str, telemetry: Telemetry) -> None:
        self._settings, self._topic, self._telemetry = settings, topic, telemetry
        self._producer: Any = None

    def put(self, message: Message, why: str) -> None:
        """Puts a message aside and returns when the broker has it. One that it does not take is logged and counted:
        it must not keep all that comes after it from being read."""
        from confluent_kafka import KafkaException, Producer

        where = f"{message.topic()}/{message.partition()}/{message.offset()}"
        failures: list[object] = []
        headers = [("pandaeval.reason", why[:500].encode()), ("pandaeval.source", where.encode())]
        try:
            if self._producer is None:
                self._producer = Producer(dict(self._settings))
            self._producer.produce(
                self._topic,
                message.value(),
                message.key(),
                headers=headers,
                on_delivery=lambda error, _: failures.append(error) if error is not None else None,
            )
            if self._producer.flush(_PATIENCE_S):
                failures.append("no broker answered in time")
        except (KafkaException, BufferError) as error:
            failures.append(error)
        if failures:
            _log.error("message %s cannot be read (%s), nor put aside in %s (%s)", where, why, self._topic, failures[0])
        else:
            _log.warning("message %s cannot be read (%s) and was put aside in %s", where, why, self._topic)
        self._telemetry.add("pandaeval.log.messages", "dead", 1, "lost" if failures else "malformed")

    def close(self) -> None:
        """Lets go of the connection."""
        if self._producer is not None:
            self._producer.flush(1)
            self._producer = None
