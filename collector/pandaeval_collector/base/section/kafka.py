"""How a Kafka cluster is reached: the keys that everything that speaks to one has in its section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from pandaeval_collector.base.section.types import EnvName, Section, Text

_OURS = frozenset(
    {"bootstrap.servers", "group.id", "group.instance.id", "sasl.password", "enable.auto.commit", "auto.offset.reset"}
    | {"enable.auto.offset.store", "partition.assignment.strategy", "session.timeout.ms", "enable.partition.eof"}
    | {"acks", "partitioner", "enable.idempotence"}
)


def _options(given: Mapping[str, str]) -> Mapping[str, str]:
    taken = sorted(_OURS & given.keys())
    if taken:
        raise ValueError(f"may not hold {taken[0]}, which the collector sets itself or has a key of its own for")
    return given


Options = Annotated[Mapping[Text, Text], AfterValidator(_options)]


class KafkaCluster(Section):
    """Where the brokers are and how they are spoken to."""

    brokers: Text | None = Field(
        default=None, description="Brokers to ask first, HOST:PORT,HOST:PORT; null: Kafka is not used here."
    )
    options: Options = Field(
        default={},
        description="More settings of librdkafka by name, such as security.protocol: SASL_SSL; secrets do not belong "
        "here.",
    )
    password_env: EnvName | None = Field(
        default=None, description="Name of the environment variable with the SASL password (sasl.password)."
    )
