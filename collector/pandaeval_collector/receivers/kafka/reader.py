"""Reads a topic, of OTLP spans or of members of sessions, on a thread of its own and hands it to the pipeline, as one
of a consumer group.

The store notes how far each partition was read in the transaction that stores what it held, so a death loses nothing
and doubles nothing. To Kafka it commits, as the offset, from where another collector would have to read again
(:mod:`.ledger`), and beside it who says so and the offset up to which all is done. A collector that gets a partition
goes on at its own place if nobody else has had it since; otherwise it reads again from the committed offset.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers.kafka.intake import DeadLetters, MessageIntake
from pandaeval_collector.receivers.kafka.ledger import PartitionLedger
from pandaeval_collector.receivers.kafka.membership import Membership, place
from pandaeval_collector.receivers.kafka.partitions import Partitions
from pandaeval_collector.receivers.kafka.protocols import (
    Deliveries,
    LeftBehindError,
    MessageSink,
    ReaderSettings,
    StoppedError,
)
from pandaeval_collector.store import Consumed
from pandaeval_collector.store.consumed import ConsumedTables

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_log = logging.getLogger(__name__)
_AT_ONCE, _WAIT_S = 500, 0.2
_TICK_S = 2.0
_AGAIN_S = 1.0
_LEAVE_S = 8.0
"""How long leaving the group may take. Two readers and what else ends with them have the 30 s of a container."""
_STILL_S = 3.0
"""After so many seconds without reading the process stood still: messages may have come that it has not seen."""
_MARGIN_S = 2.0
"""How much earlier than the broker the collector takes its partitions for lost."""
T = TypeVar("T")


class Reader:
    """One member of the consumer group. Create, :meth:`start` and :meth:`stop` it on the event loop."""

    def __init__(
        self,
        settings: ReaderSettings,
        consumed: ConsumedTables,
        sink: MessageSink[Any],
        deliveries: Deliveries,
        telemetry: Telemetry,
        ledger: Callable[[Consumed], PartitionLedger] = PartitionLedger,
    ) -> None:
        """``consumed``: the tables of this log; ``ledger`` makes the ledger of a partition."""
        self._settings, self._consumed, self._telemetry = settings, consumed, telemetry
        self._stopping = threading.Event()
        self._partitions = Partitions(settings.owner, consumed, deliveries, telemetry, ledger)
        self._letters = DeadLetters(settings.producer, settings.dead_letters, telemetry)
        self._intake = MessageIntake(self._partitions, sink, self._letters, telemetry, self._on_loop, self._stopping)
        self._member = Membership(
            settings.topic,
            self._partitions,
            sink,
            telemetry,
            self._on_loop,
            may_mark=lambda: not self._intake.at_hand,
            on_share=lambda part: self._loop.call_soon_threadsafe(self.on_share, part),
        )
        self.on_share: Callable[[float], None] = lambda part: None
        """Called on the event loop with the part of the partitions that is this collector's, at each change."""
        self.is_full: Callable[[], bool] = lambda: False
        """Whether so much waits to be decided that nothing more is taken; asked on the event loop."""
        self._thread = threading.Thread(target=self._run, name=f"pandaeval-{settings.name}", daemon=True)
        self._holds_work = False
        self._asked_at: float | None = None

    async def prepare(self) -> None:
        """Looks up what the store has read, before the pipeline starts, so that :meth:`may_decide` is right."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._partitions.load)
        self._holds_work = self._partitions.any_stored

    def start(self) -> None:
        """Starts to read. Returns at once, also where no broker can be reached."""
        self._thread.start()

    async def stop(self) -> None:
        """Leaves the group; what was read stays in the store. A broker that is away does not hold it up, nor does
        the client library, which may hang when partitions come or go at this moment (librdkafka#4041, #4527): the group
        then misses this collector after its session timeout."""
        self._stopping.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, _LEAVE_S)
        if self._thread.is_alive():
            _log.warning("the group of %s was not left within %.0f s", self._settings.topic, _LEAVE_S)

    def may_decide(self) -> bool:
        """Returns whether traces may be decided now: not before it is known which of those in the store are still this
        collector's, not while what others have read is read again, not when the group may have given its partitions to
        others, and not after the process stood still, before what came meanwhile is read. But where memory is full,
        nothing more is read until something is decided. On the event loop."""
        if not self._member.joined:
            return not self._holds_work
        if self._partitions.none_owned:
            return True
        fresh = time.monotonic() < self._member.alive_at + self._settings.session_timeout - _MARGIN_S
        return fresh and self.silence < _STILL_S and (self._partitions.caught_up or self.is_full())

    @property
    def lag(self) -> int:
        """The number of messages behind what was last seen of the ends of the partitions."""
        return self._partitions.lag

    @property
    def silence(self) -> float:
        """Seconds since messages were last asked for; 0 before the first time. Grows while the client library hangs."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    # -- on the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._asked_at = time.monotonic()
                self._read()
            except StoppedError:
                break
            except LeftBehindError as error:
                again = "joining the group anew. No two collectors may have one kafka.instance"
                _log.error("reading %s ended (%s); %s", self._settings.topic, error, again)
            except Exception:  # noqa: BLE001 - whatever a broker or a message does, the next attempt may succeed
                _log.exception("reading %s broke off; trying again", self._settings.topic)
            else:
                continue
            self._telemetry.add("pandaeval.log.errors", "retried")
            self._stopping.wait(_AGAIN_S)
        self._letters.close()

    def _read(self) -> None:
        """Reads until it is to stop. Begins with what the store says, whatever was before."""
        from confluent_kafka import Consumer

        self._member.begin()
        self._intake.at_hand = False
        self._partitions.load()
        self._holds_work = self._partitions.any_stored
        consumer = Consumer(self._settings.consumer())
        try:
            self._consumed.open(self._identity(consumer)).result()
            self._partitions.load()
            self._member.subscribe(consumer)
            tick_at = 0.0
            while not self._stopping.is_set():
                messages = consumer.consume(_AT_ONCE, _WAIT_S)
                if self.silence >= _STILL_S:  # wherever it stood still, in the taking of messages, too
                    self._member.look(consumer)
                self._asked_at = time.monotonic()
                self._member.check(consumer)
                self._intake.take(messages, lambda: self._wait(consumer))
                if time.monotonic() >= tick_at:
                    self._member.tick(consumer)
                    tick_at = time.monotonic() + _TICK_S
            self._member.tick(consumer)
        finally:
            self._member.leaving = True
            consumer.close()
            self._member.leaving = False

    def _identity(self, consumer: Consumer) -> str:
        """Returns which log this is. Waits for a broker; raises :class:`StoppedError`."""
        from confluent_kafka import KafkaException

        while not self._stopping.is_set():
            self._asked_at = time.monotonic()
            try:
                cluster = consumer.list_topics(self._settings.topic, timeout=5).cluster_id
                return f"{cluster}/{self._settings.topic}/{self._settings.group}"
            except KafkaException as error:
                _log.warning("no broker answers (%s); trying again", error.args[0].str())
        raise StoppedError

    def _wait(self, consumer: Consumer) -> None:
        """Stays a member of the group for a moment without reading on."""
        self._asked_at = time.monotonic()
        consumer.pause(consumer.assignment())
        for late in consumer.consume(1, _AGAIN_S):  # of a partition that came just now
            if late.error() is None:
                consumer.seek(place(late.topic(), late.partition(), late.offset()))
        self._member.check(consumer)
        self._member.renew(consumer)
        consumer.resume(consumer.assignment())

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()
