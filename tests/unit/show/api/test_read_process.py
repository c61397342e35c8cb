"""The process that answers what is read: it says what the collector itself would, and its end is an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api import Lookouts, read_process
from pandaeval_collector.show.api.lookouts import VERSION
from pandaeval_collector.show.api.read_process import ReadProcess
from pandaeval_collector.show.api.work import PageWork, ReadSetup, Work
from pandaeval_collector.store import Store
from support.doors import until
from support.many_traces import fill

THRESHOLDS = dict.fromkeys(registry(()), 0.5)


class Beside:
    """A store with traces and two doors to it: ``here`` answers by itself, ``there`` has a process do it."""

    def __init__(self, folder: Path, **work: Any) -> None:
        self.store = Store(folder, "off")
        fill(self.store, 60)
        metrics = [(metric, 0.5) for metric in registry(()).values()]
        self.work = Work(
            jobs=work.get("jobs", self.store.jobs.counts),
            spent=lambda: 1.25,
            session_now=self._now,
            annotate=lambda labels: self.store.people.put(labels, time.time()),
            drawing=self.store.people.drawing,
            component_errors=lambda: {("metric", "mine"): 2},
            judge="openai/gpt-4o-mini",
            metrics=metrics,
            page=PageWork({"Jaeger": "http://localhost/{trace_id}"}, 4.0),
        )
        page, self.telemetry = self.work.page, Telemetry()
        setup = ReadSetup(folder, VERSION, self.work.judge, None, THRESHOLDS, (), page, has_runs=True)
        self.reader = ReadProcess(setup, self.work, os.environ, self.telemetry)
        runs = cast(Any, object())
        self._doors = [Lookouts(folder, self.work, (), runs, reader) for reader in (None, self.reader)]
        self.here, self.there = (_client(each) for each in self._doors)

    async def _now(self, session_id: str) -> Sequence[bytes]:
        return [b'{"about": "%s"}' % session_id.encode()]

    async def close(self) -> None:
        for client in (self.here, self.there):
            await client.aclose()
        await self.reader.calls.close()
        for each in self._doors:
            each.close()
        self.store.close()


def _client(door: Lookouts) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Starlette(routes=door.routes))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost/api/v1")


@pytest.fixture
def beside(tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(**work: Any) -> AsyncIterator[Beside]:
        made = Beside(tmp_path, **work)
        try:
            yield made
        finally:
            await made.close()

    return opened


async def test_every_read_is_answered_with_the_same_bytes(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        [trace] = (await doors.here.get("/traces?limit=1")).json()["items"]
        ids = {"{trace_id}": trace["trace_id"], "{session_id}": "session 2", "{run_id}": "none", "{group_id}": "none"}
        ids["/page/session"] = "/page/session?id=session 2"
        ids["/runs/compare"] = "/runs/compare?a=none"
        fixed = "window=all&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z"
        ids |= {path: f"{path}?{fixed}" for path in ("/page/incidents", "/history")}
        told = (await doors.here.get("/openapi.json")).json()["paths"]
        paths = [path for path, methods in told.items() if "get" in methods]
        assert {"/traces/{trace_id}", "/sessions/{session_id}", "/runs", "/schedules", "/overview"} <= {*paths}
        for name, id_ in ids.items():
            paths = [path.replace(name, id_) for path in paths]
        paths += ["/openapi.json", "/traces?agent=nobody", "/traces?limit=0", "/traces/x", "/nowhere"]
        for path in paths:
            here, there = await doors.here.get(path), await doors.there.get(path)
            assert (there.status_code, there.content) == (here.status_code, here.content), path
            assert there.headers == here.headers, path
        found = (await doors.there.get("/overview")).json()
        assert "POST /runs" in found["can"]
        assert (found["spent_usd"], found["component_errors"][0]["name"]) == (1.25, "mine")
        assert (await doors.there.get("/sessions/session 2")).json()["now"] == [{"about": "session 2"}]


async def test_what_was_committed_before_is_seen_and_what_is_known_is_not_sent_again(
    beside: Callable[..., Any],
) -> None:
    async with beside() as doors:
        first = await doors.there.get("/traces?limit=1&order=newest")
        known = {"if-none-match": first.headers["etag"]}
        assert (await doors.there.get("/traces?limit=1&order=newest", headers=known)).status_code == 304
        about = {"trace_id": first.json()["items"][0]["trace_id"], "metric": "trace.tool_loop"}
        label = about | {"passed": False, "annotator": "ann"}
        assert (await doors.there.post("/annotations", json=label)).status_code == 201
        assert len((await doors.there.get("/annotations")).json()["items"]) == 1
        fill(doors.store, 40, seed=2)
        assert (await doors.there.get("/page/index?window=all&of=traces", headers=known)).json()["traces"] == 100
        assert (await doors.there.get("/traces?limit=1&order=newest", headers=known)).status_code == 200


async def test_a_store_that_the_collector_cannot_read_either_is_an_answer(beside: Callable[..., Any]) -> None:
    def broken() -> dict[str, int]:
        raise sqlite3.OperationalError("disk I/O error")

    async with beside(jobs=broken) as doors:
        answer = await doors.there.get("/overview")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert "disk I/O error" in answer.json()["detail"]


async def test_who_waits_when_the_process_is_killed_is_told_to_come_back_and_the_next_is_answered(
    beside: Callable[..., Any],
) -> None:
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 200
        first = doors.reader.calls.pid
        os.kill(first, signal.SIGSTOP)
        asking = [asyncio.ensure_future(doors.there.get("/traces")) for _ in range(3)]
        await until(lambda: doors.reader.calls.busy == 3, 60)
        os.kill(first, signal.SIGKILL)
        for answer in await asyncio.gather(*asking):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "come back" in answer.json()["detail"]
        await until(lambda: not doors.reader.calls.pause, 60)
        assert (await doors.there.get("/traces")).status_code == 200
        assert doors.reader.calls.pid not in (first, None)
        counts = doors.telemetry.counts()
        assert counts["pandaeval.readers", "ended", "signal_9"] == 1
        assert doors.telemetry.total("pandaeval.readers", "started") == 2


async def test_a_process_that_hangs_is_ended(beside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 200
        monkeypatch.setattr(read_process, "_PATIENCE_S", 0.05)
        os.kill(doors.reader.calls.pid, signal.SIGSTOP)
        assert (await doors.there.get("/traces")).status_code == 503
        await until(lambda: doors.telemetry.total("pandaeval.readers", "ended") == 1, 60)


async def test_a_process_that_cannot_be_started_is_said(
    beside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_process, "MODULE", "pandaeval_collector.not_there")
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 503
        assert doors.telemetry.total("pandaeval.readers", "not_started") == 1


async def test_an_answer_waits_for_its_reader_and_goes_when_he_hangs_up(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        sent: list[Message] = []
        reads, hung_up = asyncio.Semaphore(1), asyncio.Event()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                await reads.acquire()
            sent.append(message)

        async def receive() -> Message:
            await hung_up.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "headers": [], "query_string": b"limit=480"}
        scope |= {"path": "/results", "raw_path": b"/results", "root_path": "", "http_version": "1.1"}
        asking = asyncio.ensure_future(doors.reader(scope, receive, send))
        await until(lambda: len(sent) == 2, 60)
        assert doors.reader.calls._running is not None
        [asked] = doors.reader.calls._running[1]._asked.values()
        assert (await doors.there.get("/traces?limit=1")).status_code == 200  # others are answered meanwhile
        assert sent[1]["more_body"] is True
        assert len(sent[1]["body"]) == 64 << 10
        assert not asked.inbox.qsize(), "one piece is under way, which the reader has not taken"
        hung_up.set()
        reads.release()
        await asking
        assert sent[-1]["more_body"] is True, "it was not finished"
        assert not doors.reader.calls.busy
        assert (await doors.there.get("/traces?limit=1")).status_code == 200


async def test_who_asks_first_may_leave_while_the_process_starts(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        first, second = (asyncio.ensure_future(doors.there.get("/traces?limit=1")) for _ in range(2))
        await until(lambda: doors.reader.calls._starting is not None, 60)
        first.cancel()
        assert (await second).status_code == 200
        assert doors.telemetry.total("pandaeval.readers", "started") == 1


async def test_it_ends_while_it_starts(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        asking = asyncio.ensure_future(doors.there.get("/traces?limit=1"))
        await until(lambda: doors.reader.calls._starting is not None, 60)
        await doors.reader.calls.close()
        assert doors.reader.calls.pid is None
        await asyncio.wait([asking])
        assert (await doors.there.get("/traces?limit=1")).status_code == 503
