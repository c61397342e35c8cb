"""Bounded memory for slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given, strategies as st
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope

from pandaeval_collector.show.listener import BoundedAnswers

GET: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
LARGE = bytes(1 << 20)


class Reader:
    """A client that reads on demand."""

    def __init__(self, app: ASGIApp, reads: bool = False) -> None:
        self._reads, self._begun = asyncio.Event(), asyncio.Event()
        if reads:
            self._reads.set()
        self.messages: list[Message] = []
        self.asking = asyncio.ensure_future(app(GET, self._nothing, self._take))

    async def _nothing(self) -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _take(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            await self._reads.wait()
        self.messages.append(message)
        self._begun.set()

    async def status(self) -> int:
        await self._begun.wait()
        return int(self.messages[0]["status"])

    async def body(self) -> bytes:
        self._reads.set()
        await self.asking
        return b"".join(each["body"] for each in self.messages[1:])


def answering(*bodies: bytes) -> Callable[..., Any]:
    left = [*bodies]

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await Response(left.pop(0))(scope, receive, send)

    return app


@given(st.binary(max_size=300), st.integers(0, 1000))
def test_an_answer_is_sent_unchanged_in_pieces_of_at_most_64_kib(head: bytes, times: int) -> None:
    body = head * times

    async def asked() -> tuple[bytes, list[Message]]:
        reader = Reader(BoundedAnswers().bound(answering(body)), reads=True)
        return await reader.body(), reader.messages

    found, messages = asyncio.run(asked())
    assert found == body
    assert [each["more_body"] for each in messages[1:]] == [True] * (len(messages) - 2) + [False]
    assert max(len(each["body"]) for each in messages[1:]) <= 64 << 10


async def test_an_answer_waits_until_the_client_reads() -> None:
    reader = Reader(BoundedAnswers().bound(answering(LARGE)))
    assert await reader.status() == 200
    assert len(reader.messages) == 1, "only the head, until the client reads"
    assert await reader.body() == LARGE


async def test_requests_beyond_the_memory_limit_get_503_with_retry_after() -> None:
    bounds = BoundedAnswers(most_bytes=5 << 19)
    app = bounds.bound(answering(*(bytes([each]) * (1 << 20) for each in range(4)), b"small"))
    first, second = Reader(app), Reader(app)
    assert [await first.status(), await second.status()] == [200, 200]
    third = Reader(app, reads=True)
    assert await third.status() == 503
    assert (b"retry-after", b"5") in third.messages[0]["headers"]
    await third.asking
    assert len(await first.body()) == 1 << 20
    fourth = Reader(app, reads=True)
    assert len(await fourth.body()) == 1 << 20, "a completed answer frees its memory"
    assert await Reader(app, reads=True).body() == b"small"
    assert len(await second.body()) == 1 << 20


async def test_an_answer_over_the_limit_is_sent_if_it_is_alone() -> None:
    assert await Reader(BoundedAnswers(most_bytes=10).bound(answering(LARGE)), reads=True).body() == LARGE


async def test_requests_beyond_the_number_limit_get_503() -> None:
    app = BoundedAnswers(at_once=3).bound(answering(*[b"x"] * 9))
    slow = [Reader(app) for _ in range(3)]
    assert [await each.status() for each in slow] == [200] * 3
    refused = Reader(app, reads=True)
    assert await refused.status() == 503
    assert await slow[0].body() == b"x"
    assert await Reader(app, reads=True).body() == b"x"
    for each in slow:
        await each.body()


async def test_an_answer_that_exceeds_the_time_limit_is_aborted_and_frees_its_memory() -> None:
    bounds = BoundedAnswers(most_bytes=3 << 19, longest_s=0.01)
    app = bounds.bound(answering(LARGE, bytes(bytearray(LARGE))))
    drip = Reader(app)
    await drip.asking
    assert [each["type"] for each in drip.messages] == ["http.response.start"], "the body never ends"
    assert len(await Reader(app, reads=True).body()) == 1 << 20
