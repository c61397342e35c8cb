"""What a member of the group does when partitions come and go, and what it tells the group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers.kafka.partitions import PartitionClaim, Partitions
from pandaeval_collector.receivers.kafka.protocols import LeftBehindError, MessageSink

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_log = logging.getLogger(__name__)
_ASK_S = 30.0
Listener = Callable[["Consumer", "list[TopicPartition]"], None]


class Membership:
    """The membership in the consumer group. Used on the reader's thread. ``joined``: whether this collector's
    partitions are known; ``alive_at``: when the group last confirmed it (the moment of asking, on the monotonic
    clock)."""

    def __init__(
        self,
        topic: str,
        partitions: Partitions,
        sink: MessageSink[Any],
        telemetry: Telemetry,
        on_loop: Callable[[Coroutine[Any, Any, Any]], Any],
        may_mark: Callable[[], bool],
        on_share: Callable[[float], object],
    ) -> None:
        """``may_mark``: whether all that was read is stored; ``on_share`` is called with the part of the topic's
        partitions that is this collector's."""
        self._topic, self._partitions, self._sink, self._telemetry = topic, partitions, sink, telemetry
        self._on_loop, self._may_mark, self._on_share = on_loop, may_mark, on_share
        self._failure: BaseException | None = None
        self._has_moved = self.joined = self.leaving = False
        self.alive_at = float("-inf")

    def begin(self) -> None:
        """Resets the state before the group is joined, the first time or again."""
        self.joined, self._failure = False, None

    def subscribe(self, consumer: Consumer) -> None:
        """Joins the group. What goes wrong when partitions come and go is raised by :meth:`check`."""
        on_assign, on_revoke = self._told(self._assigned), self._told(self._revoked)
        on_lost = self._told(partial(self._revoked, lost=True))
        consumer.subscribe([self._topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)

    def check(self, consumer: Consumer) -> None:
        """Raises errors of the listeners, after each poll, and tells the share of partitions if it changed. Asks for
        their number here and not during the poll: the library ends the process when a listener asks."""
        if self._failure is not None:
            raise self._failure
        if not self._has_moved:
            return
        from confluent_kafka import KafkaException

        self._has_moved = False
        try:
            number = len(consumer.list_topics(self._topic, timeout=_ASK_S).topics[self._topic].partitions)
        except KafkaException as error:
            _log.warning("the number of partitions of %s is not known: %s", self._topic, error.args[0].str())
            return
        if number:
            self._on_share(max(1, len(self._partitions.owned)) / number)

    def look(self, consumer: Consumer) -> None:
        """Asks where the partitions end by now. Raises ``KafkaException`` where no broker answers."""
        for partition in self._partitions.owned:
            _, high = consumer.get_watermark_offsets(place(self._topic, partition, None), timeout=_ASK_S)
            self._partitions.ends(partition, high)

    def tick(self, consumer: Consumer) -> None:
        """Finds out what is done, and commits it once its results are sent."""
        ids = self._partitions.traces_to_mark() if self._may_mark() else None
        if ids is not None:
            self._partitions.mark(self._on_loop(self._open_among(ids)))
        self._partitions.settle()
        self.renew(consumer)

    def renew(self, consumer: Consumer) -> None:
        """Commits what stands, which also has the group confirm that this collector is a member. Raises
        :class:`LeftBehindError` where the client library has given up."""
        from confluent_kafka import KafkaException

        claims = self._partitions.claims()
        if not claims:
            return
        began = time.monotonic()
        places = [place(self._topic, partition, claim.replay, claim.text) for partition, claim in claims.items()]
        try:
            for each in consumer.commit(offsets=places, asynchronous=False) or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if error.args[0].code() == error.args[0]._FATAL:
                raise LeftBehindError(error.args[0].str()) from error
            _log.warning("how far %s was read could not be committed: %s", self._topic, error.args[0].str())
            self._telemetry.add("pandaeval.log.errors", "not_committed")
            return
        self.alive_at = began

    # -- called by the client library during a poll --------------------------------------------------------------

    def _told(self, listener: Listener) -> Listener:
        """Wraps a listener so that its errors are kept: the library cannot pass them on."""

        def told(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                listener(consumer, partitions)
            except BaseException as error:  # noqa: BLE001 - raised by whoever polls
                self._failure = self._failure or error

        return told

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        if self.leaving:
            consumer.incremental_assign(given)  # see _revoked
            return
        start = []
        for there in consumer.committed(given, timeout=_ASK_S) if given else ():
            low, high = consumer.get_watermark_offsets(there, timeout=_ASK_S)
            claim = PartitionClaim.of(there.offset, there.metadata)
            begin = self._partitions.take_over(there.partition, claim, low, high)
            start.append(place(there.topic, there.partition, begin))
        consumer.incremental_assign(start)
        if not self.joined:
            self._let_go(self._partitions.not_owned())
        self.joined = True
        self.renew(consumer)
        self._has_moved = True
        if start:
            _log.info("reads partitions %s of %s", self._partitions.owned, self._topic)

    def _revoked(self, consumer: Consumer, taken: list[TopicPartition], lost: bool = False) -> None:
        if not self.leaving:  # then what is open stays
            if lost:
                _log.warning("the group took partitions away: this collector gave no sign of life")
            else:
                self.tick(consumer)
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


def place(topic: str | None, partition: int | None, offset: int | None, metadata: str = "") -> TopicPartition:
    """Returns an offset in a partition, as the library wants it."""
    from confluent_kafka import TopicPartition

    return TopicPartition(str(topic), partition or 0, offset or 0, metadata)
