"""Results and session members to Kafka topics. Duplicates have equal keys, so compaction removes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from pandaeval_collector.base.section import Section, Text
from pandaeval_collector.exporters import RetryLaterError, Row, Sent, Surroundings
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.kafka.client import deliver, library, producer
from pandaeval_collector.kafka.members import member_message
from pandaeval_collector.kafka.settings import Kafka

_MOST_BYTES = 10 << 20


class KafkaResults(Section):
    """Results as messages of a Kafka topic. Set kafka.brokers too."""

    topic: Text | None = None
    """Topic for results, such as eval.scores. If null, this exporter is off."""


SETTINGS = KafkaResults


def exporters(settings: KafkaResults, around: Surroundings) -> Iterator[KafkaExporter]:
    kafka: Kafka = around.config.kafka
    if settings.topic is not None:
        yield KafkaExporter(library().Producer(producer(kafka, around.environ)), settings.topic)
    if kafka.hands_over:
        made = library().Producer({"message.max.bytes": _MOST_BYTES, **producer(kafka, around.environ)})
        message = member_message(around.store.reads.contents)
        yield KafkaExporter(made, kafka.sessions_topic, message, name="sessions", source=MEMBERS)


def _result_message(body: bytes) -> tuple[str, bytes]:
    return orjson.loads(body)["id"], body


class KafkaExporter:
    """Exports rows in order, at least once. ``message``: makes a row's key and value; on a thread."""

    off = False

    def __init__(
        self,
        made: Any,
        topic: str,
        message: Callable[[bytes], tuple[str, bytes]] = _result_message,
        *,
        name: str = "kafka",
        source: str = "results",
    ) -> None:
        self._producer, self._topic, self._message = made, topic, message
        self.name, self.source = name, source

    async def open(self, position: str) -> str:
        return position

    async def export(self, rows: Sequence[Row]) -> Sent:
        messages = (dict(zip(("key", "value"), self._message(row.body), strict=True)) for row in rows)
        if failure := await asyncio.to_thread(deliver, self._producer, self._topic, messages):
            raise RetryLaterError(failure)
        return Sent(len(rows))

    async def close(self) -> None:
        await asyncio.to_thread(self._producer.flush, 1)
