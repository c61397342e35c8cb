"""``pandaeval topics``: how the topics are made that collectors share."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import yaml

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import parse_duration, parse_size
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.config import Config

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic to be made; ``settings``: its configuration, with Kafka's own names."""

    name: str
    partitions: int
    replicas: int
    settings: dict[str, str]


def topics(
    config: Annotated[Path | None, typer.Option(help="Configuration file, for the topics' names.")] = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Of the topic with spans: the most collectors that can share it, ever.")
    ] = 48,
    replicas: Annotated[int, typer.Option(min=1, help="Brokers that hold each partition.")] = 3,
    retention: Annotated[str, typer.Option(help="How long spans are kept: the longest outage to be survived.")] = "48h",
    largest: Annotated[
        str, typer.Option(help="Largest message with spans; the Collector's exporter has the same.")
    ] = "10MiB",
    form: Annotated[
        Literal["commands", "strimzi", "bitnami"],
        typer.Option("--as", help="kafka-topics.sh commands, KafkaTopic resources, or values of Bitnami's chart."),
    ] = "commands",
) -> None:
    """Print what makes the topics of a Kafka setup (docs/scale.md). Nothing is made."""
    try:
        kept, most = parse_duration(retention), parse_size(largest)
    except ValueError as error:
        raise UserError(f"--retention {retention}, --largest {largest}: one {error}") from error
    settings = resolve_config(config).config
    wanted = _topics(settings, partitions, replicas, kept, most)
    if form == "commands":
        for topic in wanted:
            parts = ["kafka-topics.sh", "--bootstrap-server", settings.kafka.brokers or "BROKER:9092", "--create"]
            parts += ["--if-not-exists", "--topic", topic.name, "--partitions", str(topic.partitions)]
            parts += ["--replication-factor", str(topic.replicas)]
            parts += [part for key, value in topic.settings.items() for part in ("--config", f"{key}={value}")]
            typer.echo(shlex.join(parts))
        return
    documents: list[Any] = [_resource(topic) for topic in wanted]
    if form == "bitnami":
        made = [
            {"name": t.name, "partitions": t.partitions, "replicationFactor": t.replicas, "config": t.settings}
            for t in wanted
        ]
        documents = [{"provisioning": {"enabled": True, "topics": made}}]
    typer.echo(yaml.safe_dump_all(documents, sort_keys=False), nl=False)


def _topics(config: Config, partitions: int, replicas: int, retention_s: float, largest: int) -> list[Topic]:
    """Returns all topics. With two replicas or more a write needs two, so that one broker's death loses none."""
    sure = {"min.insync.replicas": str(min(2, replicas)), "unclean.leader.election.enable": "false"}
    spans = {
        **sure,
        "cleanup.policy": "delete",
        "retention.ms": str(int(retention_s * 1000)),
        "max.message.bytes": str(largest),
    }
    letters = spans | {"retention.ms": str(int(14 * _DAY_S * 1000)), "max.message.bytes": str(largest + 4096)}
    # A result that is sent twice has one id, and compaction leaves one of it.
    scores = {**sure, "cleanup.policy": "compact,delete", "retention.ms": str(int(config.store.retention * 1000))}
    few = min(partitions, 6)
    # A session that is open is read again from its first trace, so as long as it may be open the topic has to hold it.
    members = spans | {"retention.ms": str(int((retention_s + config.session.max_age) * 1000))}
    return [
        Topic(config.kafka.topic, partitions, replicas, spans),
        Topic(config.kafka.sessions_topic, partitions, replicas, members),
        Topic(config.exporters.kafka.topic, few, replicas, scores),  # type: ignore[attr-defined]
        Topic(config.kafka.dead_letters, 1, replicas, letters),
    ]


def _resource(topic: Topic) -> dict[str, Any]:
    """Returns the topic as Strimzi's ``KafkaTopic`` resource, under a name that Kubernetes allows."""
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaTopic",
        "metadata": {"name": topic.name.replace("_", "-").lower(), "labels": {"strimzi.io/cluster": "CLUSTER"}},
        "spec": {
            "topicName": topic.name,
            "partitions": topic.partitions,
            "replicas": topic.replicas,
            "config": topic.settings,
        },
    }
