"""From messages to the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.receivers.kafka.letters import DeadLetters
from pandaeval_collector.receivers.kafka.partitions import Partitions
from pandaeval_collector.receivers.kafka.protocols import MessageSink, StoppedError

if TYPE_CHECKING:
    from confluent_kafka import Message

_log = logging.getLogger(__name__)
T = TypeVar("T")


class MessageIntake(Generic[T]):
    """Used on the reader's thread. ``at_hand``: whether messages were read and are not stored yet, so that nothing can
    be said of what is done."""

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
        ``wait`` between two attempts. Raises :class:`StoppedError`."""
        good = [message for message in messages if self._is_message(message)]
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
        taken = [(each.partition(), self._taken_apart(each)) for each in messages if each.partition() in owners]
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

    def _is_message(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() != error._PARTITION_EOF:
            _log.warning("reading %s: %s", message.topic(), error.str())
            self._telemetry.add("pandaeval.log.errors", "told")
        return False

    def _taken_apart(self, message: Message) -> T:
        """One that cannot be read goes to the dead letters."""
        ledger, offset = self._partitions.ledger(message.partition()), message.offset() or 0
        try:
            taken = self._sink.take_apart(message.value() or b"", lambda key: ledger.takes(key, offset))
        except ValueError as error:
            self._letters.put(message, str(error))
            taken = self._sink.nothing
        ledger.passed(offset)
        return taken
