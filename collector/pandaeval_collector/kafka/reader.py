"""Reads a topic of OTLP spans or session members on a thread, in a consumer group.

Offsets are stored in the data's transaction. The Kafka commit has the replay offset (:mod:`.partitions`), its author
and the settled offset. A collector resumes at its own position if nobody else had the partition, else at
the committed offset.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.kafka.partitions import PartitionClaim, PartitionLedger, Partitions
from pandaeval_collector.kafka.protocols import Deliveries, LeftBehindError, ReaderSettings, StoppedError
from pandaeval_collector.kafka.topics import MemberTopic, SpanTopic
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_collector.store import Consumed
from pandaeval_collector.store.consumed import ConsumedTables

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_log = logging.getLogger(__name__)
_AT_ONCE, _WAIT_S = 500, 0.2
_ASK_S, _TICK_S, _AGAIN_S = 30.0, 2.0, 1.0
_LEAVE_S = 8.0
"""Maximum seconds for leaving the group. Two readers must end within the 30 s of a container."""
_STILL_S = 3.0
"""Seconds without reading after which the process was stalled, so it may not have seen all messages."""
_MARGIN_S = 2.0
"""Seconds by which the collector considers its partitions lost before the broker does."""
T = TypeVar("T")
Listener = Callable[["Consumer", "list[TopicPartition]"], None]


class Reader:
    """A member of the consumer group. Create, :meth:`start` and :meth:`stop` it on the event loop."""

    def __init__(
        self,
        settings: ReaderSettings,
        consumed: ConsumedTables,
        sink: SpanTopic | MemberTopic,
        deliveries: Deliveries,
        telemetry: Telemetry,
        ledger: Callable[[Consumed, int], PartitionLedger] = PartitionLedger,
    ) -> None:
        """``consumed``: this log's tables. ``ledger``: makes a partition's ledger."""
        self._settings, self._consumed, self._sink, self._telemetry = settings, consumed, sink, telemetry
        self._stopping = threading.Event()
        self._partitions = Partitions(settings.owner, consumed, deliveries, telemetry, ledger)
        self.on_share: Callable[[float], None] = lambda part: None
        """Called on the event loop with the part of the partitions that is this collector's, at each change."""
        self.is_full: Callable[[], bool] = lambda: False
        """Whether so much waits to be decided that nothing more is taken; asked on the event loop."""
        self._thread = threading.Thread(target=self._run, name=f"pandaeval-{settings.name}", daemon=True)
        self._asked_at = math.inf
        self._failure: BaseException | None = None
        """What went wrong when partitions came or went."""
        self._at_hand = False
        """Whether messages were read and are not stored yet, so that nothing can be claimed as done."""
        self._joined = self._leaving = self._has_moved = False
        """Whether this collector's partitions are known; it leaves the group; its share of them is to be told."""
        self._alive_at = float("-inf")
        """When the group last confirmed this member: the moment of asking, on the monotonic clock."""

    async def prepare(self) -> None:
        """Read stored offsets, before the pipeline starts, for :meth:`may_decide`."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._partitions.load)

    def start(self) -> None:
        """Start to read. Returns at once, also without brokers."""
        self._thread.start()

    async def stop(self) -> None:
        """Leave the group; stored data stays. Does not wait for a hanging client (librdkafka#4041, #4527)."""
        self._stopping.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, _LEAVE_S)
        if self._thread.is_alive():
            _log.warning("the group of %s was not left within %.0f s", self._settings.topic, _LEAVE_S)

    def may_decide(self) -> bool:
        """Return whether traces may be decided now.

        They may if ownership of the partitions is confirmed, and if all are read to their end or memory is full.

        On the event loop.
        """
        if not self._joined:
            return not self._partitions.any_stored
        if self._partitions.none_owned:
            return True
        fresh = time.monotonic() < self._alive_at + self._settings.session_timeout - _MARGIN_S
        return fresh and self.silence < _STILL_S and (self._partitions.caught_up or self.is_full())

    @property
    def lag(self) -> int:
        return self._partitions.lag

    @property
    def silence(self) -> float:
        """Seconds since the last poll; 0 before the first. Grows while the client hangs."""
        return max(0.0, time.monotonic() - self._asked_at)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._asked_at = time.monotonic()
                self._read()
            except StoppedError:
                break
            except LeftBehindError as error:
                again = "joining the group anew. No two collectors may have one group.instance.id"
                _log.error("reading %s ended (%s); %s", self._settings.topic, error, again)
            except Exception:  # noqa: BLE001 - the next attempt can succeed
                _log.exception("reading %s broke off; trying again", self._settings.topic)
            else:
                continue
            self._telemetry.add("pandaeval.log.errors", "retried")
            self._stopping.wait(_AGAIN_S)

    def _read(self) -> None:
        from confluent_kafka import Consumer

        self._joined, self._failure, self._at_hand = False, None, False
        self._partitions.load()
        consumer = Consumer(self._settings.consumer())
        try:
            self._consumed.open(self._identity(consumer)).result()
            self._partitions.load()
            on_assign, on_revoke = self._told(self._assigned), self._told(self._revoked)
            on_lost = self._told(partial(self._revoked, lost=True))
            consumer.subscribe([self._settings.topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
            tick_at = 0.0
            while not self._stopping.is_set():
                messages = self._poll(consumer, _AT_ONCE, _WAIT_S)
                self._take(messages, consumer)
                if time.monotonic() >= tick_at:
                    self._tick(consumer)
                    tick_at = time.monotonic() + _TICK_S
            self._tick(consumer)
        finally:
            self._leaving = True
            consumer.close()
            self._leaving = False

    def _identity(self, consumer: Consumer) -> str:
        from confluent_kafka import KafkaException

        while not self._stopping.is_set():
            self._asked_at = time.monotonic()
            try:
                cluster = consumer.list_topics(self._settings.topic, timeout=5).cluster_id
                return f"{cluster}/{self._settings.topic}/{self._settings.group}"
            except KafkaException as error:
                _log.warning("no broker answers (%s); trying again", error.args[0].str())
        raise StoppedError

    def _poll(self, consumer: Consumer, most: int, wait_s: float) -> list[Message]:
        """Poll. After a stall, looks for new messages before any decision."""
        messages = consumer.consume(most, wait_s)
        if self.silence >= _STILL_S:
            self._look(consumer)
        self._asked_at = time.monotonic()
        self._check(consumer)
        return messages

    def _wait(self, consumer: Consumer) -> None:
        consumer.pause(consumer.assignment())
        for late in self._poll(consumer, 1, _AGAIN_S):  # of a partition that came just now
            if late.error() is None:
                consumer.seek(_place(late.topic(), late.partition(), late.offset()))
        self._renew(consumer)
        consumer.resume(consumer.assignment())

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _take(self, messages: Sequence[Message], consumer: Consumer) -> None:
        """Store messages.

        Returns when stored, or when the partitions are lost. Raises :class:`StoppedError` or :class:`LeftBehindError`.
        """
        good, ended = [], []
        for message in messages:
            if (error := message.error()) is None:
                good.append(message)
            elif error.code() == error._PARTITION_EOF:
                ended.append(message)
            elif error.code() == error._FATAL:
                raise LeftBehindError(error.str())
            else:
                _log.warning("reading %s: %s", message.topic(), error.str())
                self._telemetry.add("pandaeval.log.errors", "told")
        if good:
            self._at_hand = True
            self._store(good, consumer)
            self._at_hand = False
        current = [self._partitions.at_end(each.partition(), each.offset()) for each in ended]
        if not all(current):
            self._look(consumer)
        self._partitions.stored()

    def _store(self, messages: Sequence[Message], consumer: Consumer) -> None:
        owners = self._partitions.snapshot()
        taken: list[tuple[int | None, Any]] = []
        for message in messages:
            partition, offset = message.partition(), message.offset() or 0
            if partition in owners:
                ledger = owners[partition]
                try:
                    item = self._sink.take_apart(message.value() or b"", partial(ledger.takes, offset=offset))
                    taken.append((partition, item))
                except ValueError as error:
                    _log.warning("message %s/%s/%s cannot be read (%s)", message.topic(), partition, offset, error)
                    self._telemetry.add("pandaeval.log.messages", "dead", 1, "malformed")
                ledger.passed(offset)
        read, has_warned = self._partitions.news(), False
        while True:
            # A partition that went and came back meanwhile is read again from another place.
            now = self._partitions.snapshot()
            still = {number for number, ledger in owners.items() if now.get(number) is ledger}
            whole = [each for partition, each in taken if partition in still]
            try:
                self._on_loop(self._sink.consume(whole, [each for each in read if each.partition in still]))
            except (Overloaded, Draining) as refusal:
                if not has_warned:
                    _log.warning("messages wait: %s", refusal)
                has_warned = True
            else:
                self._telemetry.add("pandaeval.log.messages", "read", len(whole))
                return
            if self._stopping.is_set():
                raise StoppedError
            self._wait(consumer)

    def _check(self, consumer: Consumer) -> None:
        """Raise listeners' errors after each poll. The library crashes if a listener queries it."""
        if self._failure is not None:
            raise self._failure
        if not self._has_moved:
            return
        from confluent_kafka import KafkaException

        self._has_moved, topic = False, self._settings.topic
        try:
            number = len(consumer.list_topics(topic, timeout=_ASK_S).topics[topic].partitions)
        except KafkaException as error:
            _log.warning("the number of partitions of %s is not known: %s", topic, error.args[0].str())
            return
        if number:
            self._loop.call_soon_threadsafe(self.on_share, max(1, len(self._partitions.owned)) / number)

    def _look(self, consumer: Consumer) -> None:
        for partition in self._partitions.owned:
            _, high = consumer.get_watermark_offsets(_place(self._settings.topic, partition, None), timeout=_ASK_S)
            self._partitions.ends(partition, high)

    def _tick(self, consumer: Consumer) -> None:
        ids = None if self._at_hand else self._partitions.traces_to_mark()
        if ids is not None:
            self._partitions.mark(self._on_loop(self._open_among(ids)))
        self._partitions.settle()
        self._renew(consumer)

    def _renew(self, consumer: Consumer) -> None:
        """Commit present offsets, which also confirms membership. Raises :class:`LeftBehindError`."""
        from confluent_kafka import KafkaException

        claims, topic = self._partitions.claims(), self._settings.topic
        if not claims:
            return
        began = time.monotonic()
        places = [_place(topic, partition, claim.replay, claim.text) for partition, claim in claims.items()]
        try:
            for each in consumer.commit(offsets=places, asynchronous=False) or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if error.args[0].code() == error.args[0]._FATAL:
                raise LeftBehindError(error.args[0].str()) from error
            _log.warning("how far %s was read could not be committed: %s", topic, error.args[0].str())
            self._telemetry.add("pandaeval.log.errors", "not_committed")
            return
        self._alive_at = began

    def _told(self, listener: Listener) -> Listener:
        """Wrap a listener to keep its errors, which the library loses."""

        def told(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                listener(consumer, partitions)
            except BaseException as error:  # noqa: BLE001 - the polling thread raises it
                self._failure = self._failure or error

        return told

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        if self._leaving:
            consumer.incremental_assign(given)  # see _revoked
            return
        start = []
        for there in consumer.committed(given, timeout=_ASK_S) if given else ():
            low, high = consumer.get_watermark_offsets(there, timeout=_ASK_S)
            claim = PartitionClaim.of(there.offset, there.metadata)
            begin = self._partitions.take_over(there.partition, claim, low, high)
            start.append(_place(there.topic, there.partition, begin))
        consumer.incremental_assign(start)
        if not self._joined:
            self._let_go(self._partitions.not_owned())
        self._joined = True
        self._renew(consumer)
        self._has_moved = True
        if start:
            _log.info("reads partitions %s of %s", self._partitions.owned, self._settings.topic)

    def _revoked(self, consumer: Consumer, taken: list[TopicPartition], lost: bool = False) -> None:
        if not self._leaving:  # while leaving, open traces stay
            if lost:
                _log.warning("the group took partitions away: this collector gave no sign of life")
            else:
                self._tick(consumer)
            self._let_go([each.partition for each in taken])
            self._has_moved = True
        consumer.incremental_unassign(taken)  # the library hangs now and then where it is left that (librdkafka#4041)

    def _let_go(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            open_ = self._on_loop(self._open_among(self._partitions.stored_traces(partition)))
            self._on_loop(self._sink.let_go(open_))
            self._partitions.release(partition, open_)

    async def _open_among(self, trace_ids: Collection[bytes]) -> set[bytes]:
        return {trace_id for trace_id in trace_ids if self._sink.is_open(trace_id)}


def _place(topic: str | None, partition: int | None, offset: int | None, metadata: str = "") -> TopicPartition:
    from confluent_kafka import TopicPartition

    return TopicPartition(str(topic), partition or 0, offset or 0, metadata)
