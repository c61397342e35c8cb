"""Fair reading of messages, a few at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from pandaeval_collector.receivers import Malformed, Overloaded, TooSlow, _body_reader
from pandaeval_collector.receivers._body_reader import BodyReader


class Call:
    """A call whose message arrives when ``arrived`` is set. ``read_begun``: its message was requested."""

    def __init__(self, peer: str = "a", message: Any = b"whole") -> None:
        self._peer, self._message = peer, message
        self.arrived, self.read_begun = asyncio.Event(), asyncio.Event()

    def peer(self) -> str:
        return self._peer

    async def read(self) -> Any:
        self.read_begun.set()
        await self.arrived.wait()
        return self._message

    def begin(self, reading: BodyReader) -> asyncio.Task[bytes]:
        return asyncio.create_task(reading.read(self))  # type: ignore[arg-type]


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def begun(calls: list[Call]) -> list[bool]:
    return [call.read_begun.is_set() for call in calls]


async def test_only_a_limited_number_of_messages_is_read_at_once() -> None:
    reading, calls = BodyReader(2), [Call() for _ in range(4)]
    tasks = [call.begin(reading) for call in calls]
    await turns()
    assert begun(calls) == [True, True, False, False]
    calls[1].arrived.set()
    await turns()
    assert begun(calls) == [True, True, True, False]
    for call in calls:
        call.arrived.set()
    assert await asyncio.gather(*tasks) == [b"whole"] * 4


async def test_fewer_messages_are_read_at_once_if_the_size_limit_is_larger() -> None:
    assert [BodyReader.of_messages(size).at_once for size in (1, 1 << 20, 8 << 20, 16 << 20, 1 << 30)] == [
        64,
        32,
        4,
        2,
        2,
    ]


async def test_a_call_that_ends_before_its_message_is_malformed() -> None:
    call = Call(message=grpc.aio.EOF)
    call.arrived.set()
    with pytest.raises(Malformed, match="before its message"):
        await call.begin(BodyReader(1))


async def test_a_stalled_message_is_refused_if_another_call_waits() -> None:
    reading = BodyReader(1, patience_s=0.05)
    stalled, ordinary = Call("slow"), Call("other")
    first = stalled.begin(reading)
    await stalled.read_begun.wait()
    ordinary.arrived.set()
    assert await ordinary.begin(reading) == b"whole"
    with pytest.raises(Overloaded, match="slowly"):
        await first
    assert not first.cancelled()


async def test_a_stalled_message_without_waiting_calls_ends_at_the_timeout() -> None:
    reading = BodyReader(1, timeout_s=0.2, patience_s=0.01)
    with pytest.raises(TooSlow, match=r"within 0\.2 s"):
        await Call().begin(reading)
    after = Call()
    after.arrived.set()
    assert await after.begin(reading) == b"whole"


async def test_connections_take_turns_and_slow_connections_come_last() -> None:
    reading = BodyReader(1, patience_s=0.05)
    many, one = [Call("slow") for _ in range(20)], Call("other")
    tasks = [call.begin(reading) for call in many]
    await turns()
    one.arrived.set()
    assert await one.begin(reading) == b"whole"
    assert not any(begun(many[2:]))  # one slow call was read before it, and one after it
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    last = Call("new")
    last.arrived.set()
    assert await last.begin(reading) == b"whole"


async def test_connections_with_large_messages_come_after_other_connections() -> None:
    reading = BodyReader(1)
    large = [Call("large", bytes(2 << 20)) for _ in range(3)]
    tasks = [call.begin(reading) for call in large]
    await turns()
    ordinary = [Call("ordinary"), Call("another")]
    tasks += [call.begin(reading) for call in ordinary]
    order = []
    for _ in range(5):
        await turns()
        call = next(each for each in (*large, *ordinary) if each.read_begun.is_set() and not each.arrived.is_set())
        order.append(call.peer())
        call.arrived.set()
    await asyncio.gather(*tasks)
    assert order == ["large", "ordinary", "another", "large", "large"]


async def test_cancelled_calls_do_not_block_waiting_calls() -> None:
    reading, calls = BodyReader(1), [Call(str(number)) for number in range(4)]
    tasks = [call.begin(reading) for call in calls]
    await turns()
    tasks[1].cancel()
    calls[0].arrived.set()
    await turns()
    assert begun(calls) == [True, False, True, False]
    tasks[2].cancel()  # while it is read
    await turns()
    assert calls[3].read_begun.is_set()
    calls[3].arrived.set()
    assert await tasks[3] == b"whole"
    assert [task.cancelled() for task in tasks] == [False, True, True, False]


async def test_a_call_over_the_limit_of_waiting_calls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_body_reader, "MAX_WAITING", 2)
    reading, calls = BodyReader(1), [Call() for _ in range(4)]
    tasks = [call.begin(reading) for call in calls]
    await turns()
    with pytest.raises(Overloaded, match="wait to be read"):
        await tasks[3]
    for call in calls:
        call.arrived.set()
    assert await asyncio.gather(*tasks[:3]) == [b"whole"] * 3
