"""Settings of a reader, and the collector parts that it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.store import Consumed
from pandaeval_otel.wire.fragments import Split


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of a reader.

    ``client``: librdkafka's. ``owner``: store ID. ``session_timeout``: seconds. ``name``: of the thread.
    """

    client: Mapping[str, object]
    topic: str
    group: str
    owner: str
    session_timeout: float = 45.0
    name: str = "kafka"

    def consumer(self) -> dict[str, object]:
        """Return consumer settings: no automatic commit, oldest message first without a commit."""
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
    """A pipeline whose traces and sessions other collectors may take over. On the event loop."""

    may_decide: Callable[[], bool]
    may_close: Callable[[], bool]

    @property
    def is_full(self) -> bool: ...

    async def consume(self, spans: Sequence[Split], read: Sequence[Consumed], logs: Sequence[Split]) -> None:
        """Store spans and log records, and their offsets."""
        ...

    async def adopt(self, members: Sequence[MemberMessage], read: Sequence[Consumed]) -> None:
        """Store session members, and their offsets."""
        ...

    async def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Forget open traces."""
        ...

    async def let_go_sessions(self, session_ids: Collection[str]) -> None:
        """Forget open sessions."""
        ...

    def is_open(self, trace_id: bytes) -> bool:
        """Return whether a trace is undecided."""
        ...

    def session_is_open(self, session_id: str) -> bool:
        """Return whether a session lacks its final score."""
        ...


class Deliveries(Protocol):
    """State of the exporters. Any thread."""

    def newest(self) -> dict[str, int]: ...

    def have_sent(self, upto: dict[str, int]) -> bool:
        """Return whether every exporter has sent the items up to these numbers."""
        ...


class StoppedError(Exception):
    """The collector stops; current messages are read again at the next start."""


class LeftBehindError(Exception):
    """The client library gave up for good. Create a new client."""
