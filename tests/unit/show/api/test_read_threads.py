"""Shared readings and sequential large answers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from starlette.requests import Request

from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.store import Store
from pandaeval_collector.store.connection import TooSlowError
from pandaeval_collector.store.finding import Finder


class Said(BaseModel):
    text: str


@pytest.fixture
def reads(tmp_path: Path) -> Iterator[Reads]:
    store = Store(tmp_path, "off")
    made = Reads(Finder(tmp_path))
    yield made
    made.close()
    store.close()


def asking(path: str, query: str = "", host: str = "localhost") -> Request:
    headers = [(b"host", host.encode())]
    return Request({"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers})


async def test_equal_concurrent_requests_share_one_answer(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    read, arrived = 0, list[str]()
    change = reads.finder.change

    def counted() -> str:
        found = change()
        arrived.append(found)
        return found

    def said() -> Said:
        nonlocal read
        read += 1
        while read == 1 and len(arrived) < 30:  # the first answer takes until all 30 requests arrived
            time.sleep(0.001)
        time.sleep(0.01)
        return Said(text=f"{read}")

    monkeypatch.setattr(reads.finder, "change", counted)
    together = await asyncio.gather(*(reads.answer(asking("/a", host=f"127.0.0.{n}"), said) for n in range(30)))
    assert (read, {each.body for each in together}) == (1, {b'{"text":"1"}'})
    assert len({id(each.body) for each in together}) == 1
    assert (await reads.answer(asking("/a", "limit=1"), said)).body == b'{"text":"2"}'
    assert (await reads.answer(asking("/b"), said)).body == b'{"text":"3"}'
    del together
    assert (await reads.answer(asking("/a"), said)).body == b'{"text":"4"}', "sent answers are not cached"


async def test_large_answers_run_one_at_a_time_and_do_not_block_small_requests(reads: Reads) -> None:
    made, first = threading.Event(), threading.Event()
    begun: list[int] = []

    def large(number: int) -> Said:
        begun.append(number)
        first.set()
        assert made.wait(60)
        return Said(text=f"{number}")

    waiting = [
        asyncio.ensure_future(reads.answer(asking(f"/{n}"), lambda n=n: large(n), large=True)) for n in range(16)
    ]
    assert await asyncio.to_thread(first.wait, 60)
    assert (await reads.answer(asking("/list"), lambda: Said(text="a list"))).body == b'{"text":"a list"}'
    assert len(begun) == 1
    assert reads.large_waiting == 16
    with pytest.raises(TooSlowError, match="try again"):
        await reads.answer(asking("/more"), lambda: large(99), large=True)
    made.set()
    assert sorted(int(each.body[9:-2]) for each in await asyncio.gather(*waiting)) == [*range(16)]
    assert 99 not in begun


async def test_an_error_reaches_all_requests_that_share_the_answer(reads: Reads) -> None:
    def wrong() -> Said:
        raise TooSlowError("this took long")

    found = await asyncio.gather(*(reads.answer(asking("/a"), wrong) for _ in range(5)), return_exceptions=True)
    assert [str(each) for each in found] == ["this took long"] * 5
