"""Spans from Kafka, for more traffic than one collector takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pandaeval_collector.base.runtime.kafka import KafkaCluster
from pandaeval_collector.base.section import PositiveDuration, Text


class Kafka(KafkaCluster):
    """Spans from a Kafka topic, which any number of collectors share (docs/scale.md)."""

    topic: Text = Field(default="otlp_spans", description="Topic with OTLP spans, each message keyed by trace id.")
    group: Text = Field(default="pandaeval", description="Consumer group of the collectors that share the topic.")
    instance: Text | None = Field(
        default=None,
        description="Name of this collector in the group, for good: one that is back within session_timeout keeps its "
        "partitions. No two may have the same; null: its partitions move at each restart.",
    )
    session_timeout: Annotated[PositiveDuration, Field(ge=6)] = Field(
        default=45.0, description="Time without a sign of life after which others take the partitions over."
    )
    sessions: Literal["none", "here", "topic"] = Field(
        default="none",
        description="Traces of a session may reach different collectors. none: no metric of level session runs; here: "
        "they run on the traces that reach this collector, right where one collector reads the whole topic; topic: "
        "decided traces go to sessions_topic, and the collectors share the sessions.",
    )
    sessions_topic: Text = Field(
        default="eval.traces", description="Topic with decided traces, each keyed by the id of its session."
    )
    dead_letters: Text = Field(default="eval.dlq", description="Topic for messages that cannot be read.")
