"""Makes the readers of a collector that shares Kafka topics of spans and sessions."""

from __future__ import annotations

import logging
from functools import partial

from pandaeval_collector.exporters import Surroundings
from pandaeval_collector.kafka.client import client, library
from pandaeval_collector.kafka.partitions import PartitionLedger, SessionLedger
from pandaeval_collector.kafka.protocols import Deliveries, ReaderSettings, SharingPipeline
from pandaeval_collector.kafka.reader import Reader
from pandaeval_collector.kafka.settings import Kafka
from pandaeval_collector.kafka.topics import MemberTopic, SpanTopic

_log = logging.getLogger(__name__)


async def readers(around: Surroundings, pipeline: SharingPipeline, deliveries: Deliveries) -> list[Reader]:
    """Make unstarted readers of spans and session members, which control when the pipeline decides.

    Returns none without a topic. Raises ``UserError``.
    """
    kafka: Kafka = around.config.kafka
    if kafka.topic is None:
        return []
    library()
    if not kafka.scores_sessions:
        _log.info("session metrics do not run: set kafka.sessions (docs/operate/scale.md#sessions)")
    store, telemetry = around.store, around.telemetry
    settings = partial(
        ReaderSettings,
        client(kafka, around.environ),
        owner=around.instance_id,
        session_timeout=kafka.session_timeout_s,
    )
    spans = Reader(
        settings(topic=kafka.topic, group=kafka.group),
        store.consumed,
        SpanTopic(pipeline, telemetry),
        deliveries,
        telemetry,
        PartitionLedger,
    )
    await _prepare(spans, around)
    pipeline.may_decide, spans.is_full = spans.may_decide, lambda: pipeline.is_full
    if not kafka.hands_over:
        return [spans]
    members = Reader(
        settings(topic=kafka.sessions_topic, group=f"{kafka.group}-sessions", name="sessions"),
        store.members_read,
        MemberTopic(pipeline),
        deliveries,
        telemetry,
        SessionLedger,
    )
    await _prepare(members, around, queue="sessions")
    pipeline.may_close = members.may_decide
    return [spans, members]


async def _prepare(reader: Reader, around: Surroundings, **about: str) -> None:
    await reader.prepare()
    around.telemetry.gauge("pandaeval.log.lag", lambda: reader.lag, **about)
    around.telemetry.gauge("pandaeval.log.silence", lambda: reader.silence, **about)
