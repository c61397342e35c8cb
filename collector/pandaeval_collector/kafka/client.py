"""Kafka clients: settings, optional library and delivery."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.kafka.settings import Kafka

_PATIENCE_S = 25.0
_OF_CONSUMERS = ("session.timeout.ms", "group.instance.id")
"""Options that producers do not take."""

_log = logging.getLogger(__name__)


def library() -> ModuleType:
    try:
        import confluent_kafka
    except ImportError as error:
        cure = installation("kafka")
        raise UserError(f"kafka.brokers: confluent-kafka is not installed; install it with: {cure}") from error
    return confluent_kafka


def client(kafka: Kafka, environ: Mapping[str, str]) -> dict[str, object]:
    settings: dict[str, object] = {"bootstrap.servers": kafka.brokers, "logger": _log, **kafka.options}
    if kafka.password_env is not None:
        password = environ.get(kafka.password_env, "").strip()
        if not password:
            raise UserError(f"the environment variable {kafka.password_env} is not set")
        settings["sasl.password"] = password
    return settings


def producer(kafka: Kafka, environ: Mapping[str, str]) -> dict[str, object]:
    """Return lossless, ordered producer settings, with Java's key partitioning."""
    sure = {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random", "delivery.timeout.ms": 20_000}
    settings = {"linger.ms": 10, "compression.type": "zstd", **client(kafka, environ), **sure}
    return {name: value for name, value in settings.items() if name not in _OF_CONSUMERS}


def deliver(producer: Any, topic: str, messages: Iterable[Mapping[str, object]]) -> str:
    """Write messages (``key``, ``value``, ``headers``) and wait. Returns the brokers' error, or ``""``. On a thread."""
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
