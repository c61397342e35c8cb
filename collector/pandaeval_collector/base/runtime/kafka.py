"""Settings of Kafka clients, and the client library where it is installed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Annotated, Any

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.section import EnvName, Section, Text, without

_OURS = frozenset(
    {"bootstrap.servers", "group.id", "group.instance.id", "sasl.password", "enable.auto.commit", "auto.offset.reset"}
    | {"enable.auto.offset.store", "partition.assignment.strategy", "session.timeout.ms", "enable.partition.eof"}
    | {"acks", "partitioner", "enable.idempotence"}
)
_QUIET_S, _PATIENCE_S = 30.0, 25.0


class KafkaCluster(Section):
    """Where the brokers are and how they are spoken to."""

    brokers: Text | None = None
    """Brokers to ask first, HOST:PORT,HOST:PORT; null: Kafka is not used here."""
    options: Annotated[Mapping[Text, Text], without(_OURS, "collector")] = {}
    """More settings of librdkafka by name, such as security.protocol: SASL_SSL; secrets do not belong here."""
    password_env: EnvName | None = None
    """Name of the environment variable with the SASL password (sasl.password)."""


class _Seldom(logging.Filter):
    """Lets one failed connection through in half a minute: the library logs each attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith(("FAIL ", "ERROR ")):
            return True
        now = time.monotonic()
        shown = now >= self._next
        if shown:
            self._next = now + _QUIET_S
        return shown


log = logging.getLogger("pandaeval_collector.kafka")
log.addFilter(_Seldom())


def library(key: str) -> ModuleType:
    """Imports confluent-kafka. Raises :class:`UserError` where it is missing; ``key`` is the setting that needs it."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise UserError(f"{key}: confluent-kafka is not installed; install it with: {installation('kafka')}") from error
    return confluent_kafka


def client(cluster: KafkaCluster, environ: Mapping[str, str]) -> dict[str, object]:
    """Returns the settings of every client of a cluster. Raises :class:`UserError` where the password is not set."""
    settings: dict[str, object] = {"bootstrap.servers": cluster.brokers, "logger": log, **cluster.options}
    if cluster.password_env is not None:
        password = environ.get(cluster.password_env, "").strip()
        if not password:
            raise UserError(f"the environment variable {cluster.password_env} is not set")
        settings["sasl.password"] = password
    return settings


def producer(cluster: KafkaCluster, environ: Mapping[str, str]) -> dict[str, object]:
    """Returns the settings of producers: they lose and reorder nothing, and put keys where Java's clients put them."""
    sure = {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random", "delivery.timeout.ms": 20_000}
    return {**client(cluster, environ), "linger.ms": 10, "compression.type": "zstd", **cluster.options, **sure}


def deliver(producer: Any, topic: str, messages: Iterable[Mapping[str, object]]) -> str:
    """Writes messages (``key``, ``value``, ``headers``) and returns when the brokers have them all; returns the error
    where they refuse one, else an empty text. On a thread."""
    failures: list[str] = []

    def done(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(error.str())

    for message in messages:
        producer.produce(topic, on_delivery=done, **message)
        producer.poll(0)
    if producer.flush(_PATIENCE_S):
        failures.append("no broker answered in time")
    return failures[0] if failures else ""
