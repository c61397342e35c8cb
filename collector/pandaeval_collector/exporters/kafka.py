"""Results to a Kafka topic, as JSON, each keyed by its id: what is sent twice is one record in a compacted topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from pandaeval_collector.base.runtime.kafka import KafkaCluster, deliver, library, producer
from pandaeval_collector.base.section import Text
from pandaeval_collector.exporters import RetryLaterError, Row, Sent, Surroundings


class KafkaResults(KafkaCluster):
    """Results to a Kafka topic, keyed by their ids."""

    topic: Text = "eval.scores"
    """Topic that results are written to."""


SETTINGS = KafkaResults


def exporters(settings: KafkaResults, around: Surroundings) -> Iterator[KafkaExporter]:
    """Makes the exporter, if there are brokers. Raises ``UserError`` where the client is not installed."""
    if settings.brokers is not None:
        made = library("exporters.kafka.brokers").Producer(producer(settings, around.environ))
        yield KafkaExporter(made, settings.topic)


class KafkaExporter:
    """Exports each row at least once, in order: after a crash the last batch is written again, under the same keys.
    ``message`` makes key and value of a row; on a thread."""

    off = False

    def __init__(
        self,
        made: Any,
        topic: str,
        message: Callable[[bytes], tuple[str, bytes]] = lambda body: (orjson.loads(body)["id"], body),
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
