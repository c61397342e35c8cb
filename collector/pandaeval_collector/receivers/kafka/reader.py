"""Reads a topic of OTLP spans on a thread of its own and hands them to the pipeline, as one of a consumer group.

The store notes how far each partition was read in the transaction that stores the spans, so a death loses nothing and
doubles nothing. To Kafka it commits, as the offset, from where another collector would have to read again
(:mod:`.ledger`), and beside it who says so and the offset up to which all is done. A collector that gets a partition
goes on at its own place if nobody else has had it since; otherwise it reads again from the committed offset.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.receivers.kafka.letters import DeadLetters
from pandaeval_collector.receivers.kafka.partitions import Claim, Partitions
from pandaeval_collector.store import Consumed, Store
from pandaeval_collector.telemetry import Telemetry
from pandaeval_otel.fragments import MalformedOtlpError, Split
from pandaeval_otel.wire import split_traces

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_log = logging.getLogger(__name__)
_AT_ONCE, _WAIT_S = 500, 0.2
_TICK_S = 2.0
_AGAIN_S = 1.0
_ASK_S = 30.0
_MARGIN_S = 2.0
"""So much earlier than the broker the collector takes its partitions for lost."""
T = TypeVar("T")
Listener = Callable[["Consumer", "list[TopicPartition]"], None]


class Sink(Protocol):
    """Where spans go; all of it on the event loop."""

    async def consume(self, splits: Sequence[Split], read: Sequence[Consumed]) -> None:
        """Stores spans and how far the log was read, in one commit. Raises a :class:`Refusal`."""
        ...

    async def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Forgets open traces with which another collector goes on."""
        ...

    def is_open(self, trace_id: bytes) -> bool:
        """Whether a trace waits for its decision."""
        ...


class Deliveries(Protocol):
    """What the exporters have sent."""

    def newest(self) -> dict[str, int]:
        """The numbers of the newest items, by what is to be sent."""
        ...

    def have_sent(self, upto: dict[str, int]) -> bool:
        """Whether every exporter has sent the items up to these numbers."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """``client``, ``producer``: settings of librdkafka; ``owner``: the id of this collector's store."""

    client: dict[str, object]
    producer: dict[str, object]
    topic: str
    group: str
    owner: str
    dead_letters: str
    instance: str | None = None
    session_timeout: float = 45.0


class Reader:
    """One member of the consumer group. Create, :meth:`start` and :meth:`stop` it on the event loop."""

    def __init__(
        self, settings: ReaderSettings, store: Store, sink: Sink, deliveries: Deliveries, telemetry: Telemetry
    ) -> None:
        self._settings, self._store, self._sink, self._telemetry = settings, store, sink, telemetry
        self._partitions = Partitions(settings.owner, store, deliveries, telemetry)
        self._letters = DeadLetters(settings.producer, settings.dead_letters, telemetry)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pandaeval-kafka", daemon=True)
        self._joined = self._holds_work = self._is_leaving = False
        self._at_hand = False
        """Whether messages were read and are not stored yet: then nothing is marked as done."""
        self._alive_at = float("-inf")
        self._failure: BaseException | None = None

    async def prepare(self) -> None:
        """Looks up what the store has read. Before the pipeline starts, so that :meth:`may_decide` is right."""
        self._loop = asyncio.get_running_loop()
        await asyncio.wrap_future(self._store.consumed.make())
        await asyncio.to_thread(self._partitions.load)
        self._holds_work = self._partitions.any_stored

    def start(self) -> None:
        """Starts to read. Returns at once, also where no broker can be reached."""
        self._thread.start()

    async def stop(self) -> None:
        """Leaves the group; what was read stays in the store."""
        self._stopping.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def may_decide(self) -> bool:
        """Whether traces may be decided now: not before it is known which of those in the store are still this
        collector's, not while what others have read is read again, and not when the group may have given its
        partitions to others. On the event loop."""
        if not self._joined:
            return not self._holds_work
        if self._partitions.none_owned:
            return True
        fresh = time.monotonic() < self._alive_at + self._settings.session_timeout - _MARGIN_S
        return fresh and self._partitions.caught_up

    @property
    def lag(self) -> int:
        """Messages behind what was last seen of the ends of the partitions."""
        return self._partitions.lag

    # -- on the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read()
            except _StoppedError:
                break
            except Exception:  # noqa: BLE001 - whatever a broker or a message does, the next attempt may succeed
                _log.exception("reading %s broke off; trying again", self._settings.topic)
                self._telemetry.add("pandaeval.log.errors", "retried")
                self._stopping.wait(_AGAIN_S)
        self._letters.close()

    def _read(self) -> None:
        """Reads until it is to stop. Whatever was before, it begins with what the store says."""
        from confluent_kafka import Consumer

        self._joined = self._at_hand = False
        self._failure = None
        self._partitions.load()
        self._holds_work = self._partitions.any_stored
        consumer = Consumer(self._consumer_settings())
        try:
            self._store.consumed.open(self._identity(consumer)).result()
            self._partitions.load()
            topics = [self._settings.topic]
            assigned, revoked, lost = map(self._told, (self._assigned, self._revoked, self._lost))
            consumer.subscribe(topics, on_assign=assigned, on_revoke=revoked, on_lost=lost)
            tick_at = 0.0
            while not self._stopping.is_set():
                messages = consumer.consume(_AT_ONCE, _WAIT_S)
                if self._failure is not None:
                    raise self._failure
                self._take(consumer, messages)
                if time.monotonic() >= tick_at:
                    self._tick(consumer)
                    tick_at = time.monotonic() + _TICK_S
            self._tick(consumer)
        finally:
            self._is_leaving = True
            consumer.close()
            self._is_leaving = False

    def _consumer_settings(self) -> dict[str, object]:
        settings: dict[str, object] = {
            "queued.max.messages.kbytes": 16_384,
            "topic.metadata.refresh.interval.ms": 10_000,
            "fetch.message.max.bytes": 10 << 20,
            **self._settings.client,
            "group.id": self._settings.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(self._settings.session_timeout * 1000),
        }
        if self._settings.instance is not None:
            settings["group.instance.id"] = self._settings.instance
        return settings

    def _identity(self, consumer: Consumer) -> str:
        """Which log this is. Waits for a broker; raises :class:`_StoppedError`."""
        from confluent_kafka import KafkaException

        while not self._stopping.is_set():
            try:
                cluster = consumer.list_topics(self._settings.topic, timeout=5).cluster_id
                return f"{cluster}/{self._settings.topic}/{self._settings.group}"
            except KafkaException as error:
                _log.warning("no broker answers (%s); trying again", error.args[0].str())
        raise _StoppedError

    def _take(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        """Stores what messages hold. Returns when that is done, or when their partitions are somebody else's; raises
        :class:`_StoppedError`."""
        good = [message for message in messages if self._is_message(message)]
        if good:
            self._at_hand = True
            self._store_all(consumer, good)
            self._at_hand = False
        for message in messages:
            if (error := message.error()) is not None and error.code() == error._PARTITION_EOF:
                self._partitions.at_end(message.partition(), message.offset())
        self._partitions.stored()

    def _store_all(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        owners = self._partitions.snapshot()
        taken = [(each.partition(), self._taken_apart(each)) for each in messages if each.partition() in owners]
        read, told = self._partitions.news(), False
        while True:
            still = {number for number, ledger in owners.items() if self._partitions.snapshot().get(number) is ledger}
            splits = [split for partition, split in taken if partition in still]
            try:
                self._on_loop(self._sink.consume(splits, [each for each in read if each.partition in still]))
            except (Overloaded, Draining) as refusal:
                if not told:
                    _log.warning("messages wait: %s", refusal)
                told = True
            else:
                self._telemetry.add("pandaeval.log.messages", "read", len(splits))
                return
            if self._stopping.is_set():
                raise _StoppedError
            self._wait(consumer)

    def _wait(self, consumer: Consumer) -> None:
        """Stays a member of the group for a moment without reading on."""
        consumer.pause(consumer.assignment())
        for late in consumer.consume(1, _AGAIN_S):  # of a partition that came just now
            if late.error() is None:
                consumer.seek(_place(late.topic(), late.partition(), late.offset()))
        self._renew(consumer)
        consumer.resume(consumer.assignment())

    def _is_message(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() != error._PARTITION_EOF:
            _log.warning("reading %s: %s", self._settings.topic, error.str())
            self._telemetry.add("pandaeval.log.errors", "told")
        return False

    def _taken_apart(self, message: Message) -> Split:
        """The fragments of a message that are not of traces which other collectors have decided. One that cannot be
        read goes to the dead letters."""
        ledger, offset = self._partitions.ledger(message.partition()), message.offset() or 0
        try:
            split = split_traces(message.value() or b"")
        except MalformedOtlpError as error:
            self._letters.put(message, str(error))
            split = Split([])
        fragments, split.fragments = split.fragments, []
        for fragment in fragments:
            if ledger.takes(fragment.trace_id, offset):
                split.fragments.append(fragment)
            else:
                for outcome in ("decoded", "duplicate"):
                    self._telemetry.add("pandaeval.spans", outcome, len(fragment.items))
        ledger.passed(offset)
        return split

    # -- ownership -----------------------------------------------------------------------------------------------

    def _told(self, listener: Listener) -> Listener:
        """A listener to the group whose errors are raised after the poll: the client library cannot pass them on."""

        def told(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                listener(consumer, partitions)
            except BaseException as error:  # noqa: BLE001 - raised by whoever polls
                self._failure = self._failure or error

        return told

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        places = consumer.committed(given, timeout=_ASK_S) if given else []
        start = []
        for place in places:
            low, high = consumer.get_watermark_offsets(place, timeout=_ASK_S)
            claim = Claim.of(place.offset, place.metadata)
            begin = self._partitions.take_over(place.partition, claim, low, high)
            start.append(_place(place.topic, place.partition, begin))
        consumer.incremental_assign(start)
        if not self._joined:
            self._let_go(self._partitions.not_owned())
        self._joined = True
        self._renew(consumer)
        if start:
            _log.info("reads partitions %s of %s", self._partitions.owned, self._settings.topic)

    def _revoked(self, consumer: Consumer, taken: list[TopicPartition]) -> None:
        if self._is_leaving:
            return
        if not self._at_hand:
            self._tick(consumer)
        self._renew(consumer)
        self._let_go([place.partition for place in taken])
        consumer.incremental_unassign(taken)

    def _lost(self, consumer: Consumer, taken: list[TopicPartition]) -> None:
        if self._is_leaving:
            return
        _log.warning("the group took partitions away: this collector gave no sign of life")
        self._let_go([place.partition for place in taken])
        consumer.incremental_unassign(taken)

    def _let_go(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            open_ = self._on_loop(self._open_among(self._partitions.stored_traces(partition)))
            self._on_loop(self._sink.let_go(open_))
            self._partitions.release(partition, open_)

    def _tick(self, consumer: Consumer) -> None:
        """Finds out what is done, and commits it once its results are sent."""
        ids = self._partitions.traces_to_mark()
        if ids is not None:
            self._partitions.mark(self._on_loop(self._open_among(ids)))
        self._partitions.settle()
        self._renew(consumer)

    def _renew(self, consumer: Consumer) -> None:
        """Commits what stands, which also tells the group that this collector lives."""
        from confluent_kafka import KafkaException

        claims = self._partitions.claims()
        if not claims:
            return
        began = time.monotonic()
        places = [
            _place(self._settings.topic, partition, claim.replay, claim.text) for partition, claim in claims.items()
        ]
        try:
            for place in consumer.commit(offsets=places, asynchronous=False) or ():
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as error:
            _log.warning("how far %s was read could not be committed: %s", self._settings.topic, error.args[0].str())
            self._telemetry.add("pandaeval.log.errors", "not_committed")
            return
        self._alive_at = began

    async def _open_among(self, trace_ids: Collection[bytes]) -> set[bytes]:
        return {trace_id for trace_id in trace_ids if self._sink.is_open(trace_id)}

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()


class _StoppedError(Exception):
    """The collector stops; what is at hand is read again at the next start."""


def _place(topic: str | None, partition: int | None, offset: int | None, metadata: str = "") -> TopicPartition:
    from confluent_kafka import TopicPartition

    return TopicPartition(str(topic), partition or 0, offset or 0, metadata)
