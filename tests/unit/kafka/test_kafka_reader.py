"""A Kafka reader after its process was paused."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.kafka import reader as its_module
from pandaeval_collector.kafka.protocols import ReaderSettings
from pandaeval_collector.kafka.reader import Reader
from pandaeval_collector.receivers import Overloaded
from pandaeval_collector.store import Consumed, Store

SETTINGS = ReaderSettings({}, "spans", "group", "me")
STILL = 7.0


class Error:
    _PARTITION_EOF, _FATAL = -191, -150

    def code(self) -> int:
        return self._PARTITION_EOF


@dataclass(frozen=True)
class Message:
    """A message of partition 0; ``end``: end of partition."""

    at: int
    end: bool = False

    def topic(self) -> str:
        return "spans"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return b"%d" % self.at

    def error(self) -> Error | None:
        return Error() if self.end else None


class TopicPartition(SimpleNamespace):
    def __init__(self, topic: str, partition: int, offset: int = -1001, metadata: str = "") -> None:
        super().__init__(topic=topic, partition=partition, offset=offset, metadata=metadata, error=None)


class World:
    """Broker, clock and sink. ``high``: partition end; ``steps``: poll answers; ``may``: recorded decisions."""

    def __init__(self) -> None:
        self.now, self.high = 1000.0, 0
        self.steps: list[Callable[[], Sequence[Message]]] = []
        self.refusals: list[Callable[[], None]] = []
        self.may: list[bool] = []
        self.stored: list[bytes] = []
        self.done = threading.Event()
        self.reader: Reader | None = None
        self._assigned: Callable[..., None] | None = None

    def stand_still(self, comes: int) -> None:
        """Pause the process until traces are due; ``comes`` messages arrive meanwhile."""
        self.now += STILL
        self.high += comes

    # -- the client ----------------------------------------------------------------------------------------------

    def list_topics(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(cluster_id="c", topics={"spans": SimpleNamespace(partitions={0: None})})

    def subscribe(self, topics: Sequence[str], on_assign: Callable[..., None], **_: object) -> None:
        self._assigned = on_assign

    def consume(self, *_: object) -> Sequence[Message]:
        if self._assigned is not None:
            assigned, self._assigned = self._assigned, None
            assigned(self, [TopicPartition("spans", 0)])
            return []
        if not self.steps:
            self.done.set()
            return []
        assert self.reader is not None
        self.may.append(self.reader.may_decide())
        return self.steps.pop(0)()

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, self.high

    def committed(self, given: object, **_: object) -> object:
        return given

    def commit(self, **_: object) -> None:
        pass

    def assignment(self) -> list[TopicPartition]:
        return []

    incremental_assign = incremental_unassign = pause = resume = seek = lambda self, *_: None

    def close(self) -> None:
        pass

    # -- the sink ------------------------------------------------------------------------------------------------

    def take_apart(self, message: bytes, meets: Callable[[bytes], bool]) -> bytes:
        meets(message.rjust(16))
        return message

    async def consume_all(self, taken: Sequence[bytes], read: Sequence[Consumed]) -> None:
        if self.refusals:
            self.refusals.pop(0)()
            raise Overloaded("not now")
        self.stored += taken

    async def let_go(self, keys: Collection[bytes]) -> None:
        pass

    def is_open(self, key: bytes) -> bool:
        return True


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world, library = World(), ModuleType("confluent_kafka")
    of_library = {"Consumer": lambda _: world, "KafkaException": RuntimeError, "TopicPartition": TopicPartition}
    for name, value in of_library.items():
        setattr(library, name, value)
    monkeypatch.setitem(sys.modules, "confluent_kafka", library)
    monkeypatch.setattr(its_module, "time", SimpleNamespace(monotonic=lambda: world.now))
    monkeypatch.setattr(its_module, "_AGAIN_S", 0.01)
    return world


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, durability="off")
    yield store
    store.close()


def nothing() -> Sequence[Message]:
    return []


async def run(world: World, store: Store) -> None:
    sink = SimpleNamespace(
        take_apart=world.take_apart,
        consume=world.consume_all,
        let_go=world.let_go,
        is_open=world.is_open,
    )
    deliveries = SimpleNamespace(newest=dict, have_sent=lambda upto: True)
    world.reader = Reader(SETTINGS, store.consumed, sink, deliveries, Telemetry())
    await world.reader.prepare()
    world.reader.start()
    assert await asyncio.to_thread(world.done.wait, 30)
    await world.reader.stop()


async def test_an_end_of_partition_from_before_a_pause_is_ignored(world: World, store: Store) -> None:
    def still() -> Sequence[Message]:
        world.stand_still(comes=1)
        return []

    world.high = 1
    world.steps = [
        lambda: [Message(0)],
        still,
        lambda: [Message(1, end=True)],  # queued in the library before the pause
        nothing,
        lambda: [Message(1)],
        nothing,
    ]
    await run(world, store)
    assert world.may == [False, True, False, False, False, True]
    assert world.stored == [b"0", b"1"]


async def test_a_pause_is_detected_while_messages_wait_for_the_sink(world: World, store: Store) -> None:
    world.high = 1
    world.refusals = [lambda: world.stand_still(comes=1)]
    world.steps = [lambda: [Message(0)], nothing, nothing, lambda: [Message(1)], nothing]
    await run(world, store)
    assert world.may == [False, False, False, False, True]
    assert world.stored == [b"0", b"1"]
