"""What a collector shares with others: spans and sessions of Kafka topics, and sessions that one collector owns."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial

from pandaeval_collector.app.outlets import Outlets, instance_id
from pandaeval_collector.base.runtime.kafka import library, producer
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.exporters import Exporter
from pandaeval_collector.exporters.delivery.members import ToOwner, ToTopic
from pandaeval_collector.pipeline.line.handed import with_contents
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.topics import MemberTopic, SpanTopic
from pandaeval_collector.receivers.kafka.ledger import SessionLedger
from pandaeval_collector.receivers.kafka.reader import Reader
from pandaeval_collector.runs.settings import kafka_members, kafka_reader, ownership
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)
_MOST_CONTENTS, _MOST_IN_MESSAGE = 4 << 20, 700 << 10
"""Bytes of spans that go to the owner of a session with one trace; in a message, of which brokers take 1 MB unless they
are told otherwise."""


class Sharing:
    """Makes the parts of one collector that talk to the log and to the owner of its sessions. ``token``: the one that
    the owner asks for."""

    def __init__(self, config: Config, environ: Mapping[str, str], telemetry: Telemetry, token: str | None) -> None:
        self._config, self._environ, self._telemetry, self._token = config, environ, telemetry, token

    def exporters(self, store: Store) -> Iterator[Exporter]:
        """Yields the exporter of decided traces to the owner of their sessions, if another collector scores them."""
        sessions = self._config.sessions

        def complete(member: bytes, most: int = _MOST_CONTENTS) -> bytes:
            return with_contents(member, store.reads.contents, most)

        if sessions.forward_to is not None:
            yield ToOwner(sessions.forward_to, complete, token=self._token, certificate=sessions.certificate)
        elif ownership(self._config) == "shared":
            kafka = self._config.kafka
            made = library("kafka.brokers").Producer({"message.max.bytes": 10 << 20, **producer(kafka, self._environ)})
            yield ToTopic(made, kafka.sessions_topic, partial(complete, most=_MOST_IN_MESSAGE))

    async def spans(self, store: Store, pipeline: Pipeline, outlets: Outlets) -> Reader | None:
        """Makes the reader of spans from Kafka, not started; from now on it tells the pipeline what may be decided."""
        configured = kafka_reader(self._config.kafka, self._environ, await instance_id(store))
        if configured is None:
            return None
        if self._config.kafka.sessions == "none" and self._config.sessions.forward_to is None:
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
