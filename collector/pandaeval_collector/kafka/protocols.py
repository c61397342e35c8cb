"""The settings of a reader, and the parts of a collector that it works with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.store import Consumed
from pandaeval_otel.wire.fragments import Split


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of a reader. ``client``: settings of librdkafka; ``owner``: the id of this collector's store;
    ``session_timeout``: seconds; ``name``: of the thread that reads."""

    client: Mapping[str, object]
    topic: str
    group: str
    owner: str
    session_timeout: float = 45.0
    name: str = "kafka"

    def consumer(self) -> dict[str, object]:
        """Return the settings of the consumer. It commits nothing by itself, and begins with the oldest message where
        nothing was committed."""
        return {
            "queued.max.messages.kbytes": 16_384,
            "fetch.message.max.bytes": 10 << 20,
            "topic.metadata.refresh.interval.ms": 10_000,
            **self.client,
            "group.id": self.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "partition.assignment.strategy": "cooperative-sticky",
        }


class SharingPipeline(Protocol):
    """A pipeline that stores what came from topics, and whose traces and sessions other collectors may take over. On
    the event loop."""

    may_decide: Callable[[], bool]
    may_close: Callable[[], bool]

    @property
    def is_full(self) -> bool:
        """Whether undecided traces fill the memory that is set aside for them."""
        ...

    async def consume(self, spans: Sequence[Split], read: Sequence[Consumed], logs: Sequence[Split]) -> None:
        """Store spans and log records, and how far their topic was read."""
        ...

    async def adopt(self, members: Sequence[MemberMessage], read: Sequence[Consumed]) -> None:
        """Store members of sessions, and how far their topic was read."""
        ...

    async def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Forget open traces."""
        ...

    async def let_go_sessions(self, session_ids: Collection[str]) -> None:
        """Forget open sessions."""
        ...

    def is_open(self, trace_id: bytes) -> bool:
        """Return whether a trace waits for its decision or is being decided."""
        ...

    def session_is_open(self, session_id: str) -> bool:
        """Return whether a session is not scored for good yet."""
        ...


class Deliveries(Protocol):
    """Tells what the exporters have sent. Any thread."""

    def newest(self) -> dict[str, int]:
        """Return the numbers of the newest items, by the signal they belong to."""
        ...

    def have_sent(self, upto: dict[str, int]) -> bool:
        """Return whether every exporter has sent the items up to these numbers."""
        ...


class StoppedError(Exception):
    """The collector stops; what is at hand is read again at the next start."""


class LeftBehindError(Exception):
    """The client library has given up for good, as where the broker takes another one for this member of the group; a
    new one has to join."""
