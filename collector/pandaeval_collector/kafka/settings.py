"""The configuration section ``kafka``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from pandaeval_collector.base.section import EnvName, Section, Text, without

_OURS = frozenset(
    {"bootstrap.servers", "group.id", "sasl.password", "enable.auto.commit", "auto.offset.reset"}
    | {"enable.auto.offset.store", "partition.assignment.strategy", "enable.partition.eof"}
    | {"acks", "partitioner", "enable.idempotence"}
)
_TIMEOUT, _TIMEOUT_MS, _LEAST_MS = "session.timeout.ms", 45_000, 6_000


Option = Text | bool | int | float


def _with_timeout(options: Mapping[str, Option]) -> Mapping[str, Option]:
    text = str(options.get(_TIMEOUT, _TIMEOUT_MS))
    if not text.isdecimal() or int(text) < _LEAST_MS:
        raise ValueError(f"{_TIMEOUT} is not a whole number of {_LEAST_MS} or more")
    return options


class Kafka(Section):
    """Kafka as a source of spans for several collectors, and as a destination of results (docs/operate/scale.md)."""

    brokers: Text | None = None
    """Addresses of brokers, such as HOST:PORT,HOST:PORT. If null, Kafka is off."""
    options: Annotated[Mapping[Text, Option], without(_OURS, "collector"), AfterValidator(_with_timeout)] = {}
    """Settings of librdkafka by name, such as security.protocol: SASL_SSL, without secrets. If group.instance.id is
    set, a collector keeps its partitions during a restart of at most session.timeout.ms (45000)."""
    password_env: EnvName | None = None
    """Name of the environment variable with the SASL password (sasl.password)."""
    topic: Text | None = None
    """Topic with OTLP spans. The key of each message is the trace ID. If null, the collector reads no spans from
    Kafka."""
    group: Text = "pandaeval"
    """Consumer group of the collectors that share the topic."""
    sessions: Literal["none", "here", "topic"] = "none"
    """Where the session metrics of traces from Kafka are computed. none turns these metrics off. With here, this
    collector scores them, and must be the only collector. With topic, collectors exchange completed traces over
    sessions_topic."""
    sessions_topic: Text = "eval.traces"
    """Topic with completed traces. The key of each message is the session ID."""

    @property
    def scores_sessions(self) -> bool:
        return self.topic is None or self.sessions != "none"

    @property
    def hands_over(self) -> bool:
        """Whether decided traces go to the collectors that share their sessions."""
        return self.topic is not None and self.sessions == "topic"

    @property
    def session_timeout_s(self) -> float:
        """Seconds without a heartbeat until others take over."""
        return int(self.options.get(_TIMEOUT, _TIMEOUT_MS)) / 1000

    def conflicts(self, config: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        topics = {"kafka.topic": self.topic, "exporters.kafka.topic": config.exporters.kafka.topic}
        used = [key for key, topic in topics.items() if topic is not None]
        if self.brokers is None:
            yield from (((key, "kafka.brokers"), f"{key} needs kafka.brokers") for key in used)
        elif not used:
            yield ("kafka.brokers",), f"nothing is read from Kafka or written to it; set {' or '.join(topics)}"
        if self.topic is not None and config.store.on_shutdown != "persist":
            message = (
                "open traces of a Kafka topic are read again by another collector: store.on_shutdown has to be persist"
            )
            yield ("store.on_shutdown", "kafka.topic"), message
