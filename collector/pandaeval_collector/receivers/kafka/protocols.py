"""What a reader is told and given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pandaeval_collector.store import Consumed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of a reader. ``client``, ``producer``: settings of librdkafka; ``owner``: the id of this collector's
    store; ``name``: of the thread that reads."""

    client: Mapping[str, object]
    producer: Mapping[str, object]
    topic: str
    group: str
    owner: str
    dead_letters: str
    instance: str | None = None
    session_timeout: float = 45.0
    name: str = "kafka"

    def consumer(self) -> dict[str, object]:
        """Returns the settings of the consumer. It commits nothing by itself, and begins with the oldest message where
        nothing was committed."""
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


class MessageSink(Protocol[T]):
    """Takes messages, and knows their units (traces, or sessions) by their keys. All of it on the event loop, but for
    taking messages apart."""

    def take_apart(self, message: bytes, meets: Callable[[bytes], bool]) -> T:
        """Returns what is to be stored of a message. ``meets`` is called with the key of each unit that it is about,
        and says whether that is still to be dealt with. Raises ``ValueError`` for an unreadable message. On the
        reader's thread."""
        ...

    async def consume(self, taken: Sequence[T], read: Sequence[Consumed]) -> None:
        """Stores what was in messages and how far the log was read, in one commit. Raises a :class:`Refusal`."""
        ...

    async def let_go(self, keys: Collection[bytes]) -> None:
        """Forgets open units with which another collector goes on."""
        ...

    def is_open(self, key: bytes) -> bool:
        """Returns whether something is left to be decided of a unit."""
        ...


class Deliveries(Protocol):
    """Tells what the exporters have sent. Any thread."""

    def newest(self) -> dict[str, int]:
        """Returns the numbers of the newest items, by the signal they belong to."""
        ...

    def have_sent(self, upto: dict[str, int]) -> bool:
        """Returns whether every exporter has sent the items up to these numbers."""
        ...


class StoppedError(Exception):
    """The collector stops; what is at hand is read again at the next start."""


class LeftBehindError(Exception):
    """The client library has given up for good, as where the broker takes another one for this member of the group; a
    new one has to join."""
