"""What a collector shares with others: spans and sessions of Kafka topics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import zstandard

from pandaeval_collector.app.outlets import Outlets, instance_id
from pandaeval_collector.base.runtime.kafka import client, library, producer
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.exporters import Exporter
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.kafka import KafkaExporter
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.topics import MemberTopic, SpanTopic
from pandaeval_collector.receivers.kafka.partitions import PartitionLedger, SessionLedger
from pandaeval_collector.receivers.kafka.protocols import ReaderSettings
from pandaeval_collector.receivers.kafka.reader import Reader
from pandaeval_collector.runs.front import hands_over
from pandaeval_collector.store import Store
from pandaeval_otel._proto.member_pb2 import Content, Member

_log = logging.getLogger(__name__)
_MOST_CONTENTS = 700 << 10
"""Bytes of spans that go with a trace to whoever scores its session: brokers take messages of 1 MB by default."""


def with_contents(message: bytes, read: Callable[[bytes], Sequence[tuple[bool, bytes]]], most: int) -> bytes:
    """Adds to a packed member what is stored of its trace (``read``, by trace id), where whoever scores its session may
    need it. Adds no more than ``most`` bytes."""
    member = Member.FromString(message)
    if not member.decided:
        return message
    try:
        parts = read(member.trace_id)
    except zstandard.ZstdError as error:
        _log.warning("the spans of trace %s were damaged and stay here (%s)", member.trace_id.hex(), error)
        return message
    if sum(len(request) for _, request in parts) > most:
        return message
    contents = [Content(request=request, logs=logs) for logs, request in parts]
    return message + Member(contents=contents).SerializeToString()


def members_exporters(config: Config, environ: Mapping[str, str], store: Store) -> Iterator[Exporter]:
    """Yields the exporter of decided traces to the topic of sessions, if several collectors score those."""

    def message(member: bytes) -> tuple[str, bytes]:
        return Member.FromString(member).session_id, with_contents(member, store.reads.contents, _MOST_CONTENTS)

    if hands_over(config):
        settings = {"message.max.bytes": 10 << 20, **producer(config.kafka, environ)}
        made = library("kafka.brokers").Producer(settings)
        yield KafkaExporter(made, config.kafka.sessions_topic, message, name="sessions", source=MEMBERS)


async def topic_readers(
    config: Config, environ: Mapping[str, str], telemetry: Telemetry, store: Store, pipeline: Pipeline, outlets: Outlets
) -> list[Reader]:
    """Makes the readers of spans and, where several collectors score sessions, of their members; not started. From now
    on they tell the pipeline what may be decided and closed. None without Kafka. Raises ``UserError`` for a missing
    package or setting."""
    kafka = config.kafka
    if kafka.brokers is None:
        return []
    library("kafka.brokers")
    if kafka.sessions == "none":
        _log.info("session metrics do not run: set kafka.sessions (docs/operate/scale.md#sessions)")
    settings = ReaderSettings(
        client(kafka, environ),
        producer(kafka, environ),
        topic=kafka.topic,
        group=kafka.group,
        owner=await instance_id(store),
        dead_letters=kafka.dead_letters,
        instance=kafka.instance,
        session_timeout=kafka.session_timeout,
    )

    async def prepared(reader: Reader, **about: str) -> Reader:
        await reader.prepare()
        telemetry.gauge("pandaeval.log.lag", lambda: reader.lag, **about)
        telemetry.gauge("pandaeval.log.silence", lambda: reader.silence, **about)
        return reader

    sink = SpanTopic(pipeline, telemetry)
    spans = await prepared(Reader(settings, store.consumed, sink, outlets, telemetry, PartitionLedger))
    pipeline.may_decide, spans.is_full = spans.may_decide, lambda: pipeline.is_full
    if not hands_over(config):
        return [spans]
    settings = replace(settings, topic=kafka.sessions_topic, group=f"{kafka.group}-sessions", name="sessions")
    reader = Reader(settings, store.members_read, MemberTopic(pipeline), outlets, telemetry, SessionLedger)
    members = await prepared(reader, queue="sessions")
    pipeline.may_close = members.may_decide
    return [spans, members]
