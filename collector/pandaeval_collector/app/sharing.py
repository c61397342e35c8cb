"""What a collector shares with others: spans and sessions of Kafka topics."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from pandaeval_collector.app.outlets import Outlets, instance_id
from pandaeval_collector.base.runtime.kafka import library, producer
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.exporters import Exporter
from pandaeval_collector.exporters.delivery.members import ToTopic
from pandaeval_collector.pipeline.line.handed import with_contents
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.topics import MemberTopic, SpanTopic
from pandaeval_collector.receivers.kafka.ledger import SessionLedger
from pandaeval_collector.receivers.kafka.reader import Reader
from pandaeval_collector.runs.settings import hands_over, kafka_members, kafka_reader
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)
_MOST_CONTENTS = 700 << 10
"""Bytes of spans that go with a trace to whoever scores its session: brokers take messages of 1 MB by default."""


class Sharing:
    """Makes the parts of one collector that talk to the log."""

    def __init__(self, config: Config, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        self._config, self._environ, self._telemetry = config, environ, telemetry

    def exporters(self, store: Store) -> Iterator[Exporter]:
        """Yields the exporter of decided traces to the topic of sessions, if several collectors score those."""
        if hands_over(self._config):
            kafka = self._config.kafka
            made = library("kafka.brokers").Producer({"message.max.bytes": 10 << 20, **producer(kafka, self._environ)})
            yield ToTopic(
                made, kafka.sessions_topic, lambda member: with_contents(member, store.contents, _MOST_CONTENTS)
            )

    async def spans(self, store: Store, pipeline: Pipeline, outlets: Outlets) -> Reader | None:
        """Makes the reader of spans from Kafka, not started; from now on it tells the pipeline what may be decided."""
        configured = kafka_reader(self._config.kafka, self._environ, await instance_id(store))
        if configured is None:
            return None
        if self._config.kafka.sessions == "none":
            _log.info("metrics of sessions do not run: kafka.sessions says who scores them (docs/scale.md#sessions)")
        sink = SpanTopic(pipeline, self._telemetry)
        reader = Reader(configured, store.consumed, sink, outlets, self._telemetry)
        await reader.prepare()
        pipeline.may_decide, reader.is_full = reader.may_decide, lambda: pipeline.is_full
        self._watch(reader)
        return reader

    async def members(self, store: Store, pipeline: Pipeline, outlets: Outlets) -> Reader | None:
        """Makes the reader of members of sessions from the topic that collectors share them by, not started."""
        configured = kafka_members(self._config.kafka, self._environ, await instance_id(store))
        if configured is None:
            return None
        sink = MemberTopic(pipeline)
        reader = Reader(configured, store.members_read, sink, outlets, self._telemetry, SessionLedger)
        await reader.prepare()
        pipeline.may_close = reader.may_decide
        self._watch(reader, queue="sessions")
        return reader

    def _watch(self, reader: Reader, **about: str) -> None:
        self._telemetry.gauge("pandaeval.log.lag", lambda: reader.lag, **about)
        self._telemetry.gauge("pandaeval.log.silence", lambda: reader.silence, **about)
