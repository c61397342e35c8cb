"""From messages to the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pandaeval_collector.base.runtime.kafka import deliver
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.receivers.kafka.partitions import Partitions
from pandaeval_collector.receivers.kafka.protocols import LeftBehindError, MessageSink, StoppedError

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


T = TypeVar("T")


class MessageIntake(Generic[T]):
    """Stores the messages of a topic. Used on the reader's thread. ``at_hand``: whether messages were read and are not
    stored yet, so that nothing can be claimed as done."""

    def __init__(
        self,
        partitions: Partitions,
        sink: MessageSink[T],
        letters: DeadLetters,
        telemetry: Telemetry,
        on_loop: Callable[[Coroutine[Any, Any, Any]], Any],
        stopping: threading.Event,
    ) -> None:
        self._partitions, self._sink, self._letters, self._telemetry = partitions, sink, letters, telemetry
        self._on_loop, self._stopping = on_loop, stopping
        self.at_hand = False

    def take(self, messages: Sequence[Message], wait: Callable[[], None]) -> None:
        """Stores what messages hold. Returns when that is done, or when their partitions are somebody else's; calls
        ``wait`` between two attempts. Raises :class:`StoppedError`, and :class:`LeftBehindError` where the client
        library has given up."""
        good = []
        for message in messages:
            if (error := message.error()) is None:
                good.append(message)
            elif error.code() == error._FATAL:
                raise LeftBehindError(error.str())
            elif error.code() != error._PARTITION_EOF:
                _log.warning("reading %s: %s", message.topic(), error.str())
                self._telemetry.add("pandaeval.log.errors", "told")
        if good:
            self.at_hand = True
            self._store(good, wait)
            self.at_hand = False
        for message in messages:
            if (error := message.error()) is not None and error.code() == error._PARTITION_EOF:
                self._partitions.at_end(message.partition(), message.offset())
        self._partitions.stored()

    def _store(self, messages: Sequence[Message], wait: Callable[[], None]) -> None:
        owners = self._partitions.snapshot()
        taken: list[tuple[int | None, T]] = []
        for message in messages:
            partition, offset = message.partition(), message.offset() or 0
            if partition in owners:
                ledger = owners[partition]
                try:
                    item = self._sink.take_apart(message.value() or b"", partial(ledger.takes, offset=offset))
                except ValueError as error:
                    self._letters.put(message, str(error))
                    item = self._sink.nothing
                ledger.passed(offset)
                taken.append((partition, item))
        read, told = self._partitions.news(), False
        while True:
            # A partition that went and came back meanwhile is read again from another place.
            now = self._partitions.snapshot()
            still = {number for number, ledger in owners.items() if now.get(number) is ledger}
            whole = [each for partition, each in taken if partition in still]
            try:
                self._on_loop(self._sink.consume(whole, [each for each in read if each.partition in still]))
            except (Overloaded, Draining) as refusal:
                if not told:
                    _log.warning("messages wait: %s", refusal)
                told = True
            else:
                self._telemetry.add("pandaeval.log.messages", "read", len(whole))
                return
            if self._stopping.is_set():
                raise StoppedError
            wait()
