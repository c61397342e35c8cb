"""What a reader is told and given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pandaeval_collector.store import Consumed
from pandaeval_otel.fragments import Split


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """``client``, ``producer``: settings of librdkafka; ``owner``: the id of this collector's store."""

    client: Mapping[str, object]
    producer: Mapping[str, object]
    topic: str
    group: str
    owner: str
    dead_letters: str
    instance: str | None = None
    session_timeout: float = 45.0

    def consumer(self) -> dict[str, object]:
        """What the consumer is made with. It commits nothing by itself, and begins where nothing was committed with the
        oldest message."""
        settings: dict[str, object] = {
            "queued.max.messages.kbytes": 16_384,
            "fetch.message.max.bytes": 10 << 20,
            "topic.metadata.refresh.interval.ms": 10_000,
            **self.client,
            "group.id": self.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(self.session_timeout * 1000),
        }
        return settings if self.instance is None else settings | {"group.instance.id": self.instance}


class Sink(Protocol):
    """Where spans go; all of it on the event loop."""

    async def consume(self, spans: Sequence[Split], read: Sequence[Consumed], logs: Sequence[Split] = ()) -> None:
        """Stores spans, log records and how far the log was read, in one commit. Raises a :class:`Refusal`."""
        ...

    async def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Forgets open traces with which another collector goes on."""
        ...

    def is_open(self, trace_id: bytes) -> bool:
        """Whether a trace waits for its decision."""
        ...


class Deliveries(Protocol):
    """What the exporters have sent. Any thread."""

    def newest(self) -> dict[str, int]:
        """The numbers of the newest items, by what is to be sent."""
        ...

    def have_sent(self, upto: dict[str, int]) -> bool:
        """Whether every exporter has sent the items up to these numbers."""
        ...


class StoppedError(Exception):
    """The collector stops; what is at hand is read again at the next start."""
