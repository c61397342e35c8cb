"""The reader process, compared with direct reads."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import Message

from pandaeval_collector.app import reader_process
from pandaeval_collector.app.reader_process import ReaderProcess
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.show.listener import shown
from pandaeval_collector.store import Store
from support.api import ReadInterfaces
from support.evaluation_runs import evaluation_runs
from support.many_traces import fill
from support.receivers import until


class Beside:
    """A store read directly (``here``) and by a process (``there``)."""

    def __init__(self, folder: Path, errors: Any = None, **settings: Any) -> None:
        config = Config.model_validate(
            {
                "store": {"path": str(folder)},
                "judge": {"model": "openai/gpt-4o-mini"},
                "ui": {"links": {"Jaeger": "http://localhost/{trace_id}"}},
                **settings,
            }
        )
        self.store, self.telemetry = Store(folder, "off"), Telemetry()
        fill(self.store, 60)
        self.store.spending.reserve(1.25, None, self.store.spending.today(time.time())).result()
        scorer = evaluator(config)
        work = Work(
            self.store,
            self._errors,
            lambda: [(metric, scorer.threshold(metric)) for metric in registry(()).values()],
            judge=config.judge.model,
            page=PageWork(config.ui.links, 4327),
            dismiss=self._emitted,
        )
        self.telemetry.component_errors = errors or (lambda: {("metric", "mine"): 2})  # type: ignore[method-assign]
        self.reader = ReaderProcess(config, os.environ, self.telemetry, self.store, {"emitted": self._emitted})
        self._here = ReadInterfaces(folder, work, (), evaluation_runs(self.store, config))
        self.here = _client(self._here.routes)
        self.there = _client(shown(self.reader, (), has_page=True))

    async def _errors(self) -> Mapping[tuple[str, str], int]:
        return self.telemetry.component_errors()

    async def _emitted(self, *_: Any) -> None:
        raise AssertionError("no run exports anything")

    async def close(self) -> None:
        for client in (self.here, self.there):
            await client.aclose()
        await self.reader.calls.close()
        self._here.close()
        self.store.close()


def _client(routes: Sequence[BaseRoute]) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Starlette(routes=routes))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost/api/v1")


@pytest.fixture
def beside(tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(**given: Any) -> AsyncIterator[Beside]:
        made = Beside(tmp_path, **given)
        try:
            yield made
        finally:
            await made.close()

    return opened


async def test_the_reader_process_returns_the_same_bytes_as_direct_reads(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        [trace] = (await doors.here.get("/traces?limit=1")).json()["items"]
        ids = {"{trace_id}": trace["trace_id"], "{session_id}": "session 2", "{run_id}": "none", "{group_id}": "none"}
        ids["{incident_id}"] = "none"
        ids["/page/session"] = "/page/session?id=session 2"
        ids["/runs/compare"] = "/runs/compare?a=none"
        fixed = "window=all&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z"
        path_items = (await doors.here.get("/openapi.json")).json()["paths"]
        paths = [path for path, methods in path_items.items() if "get" in methods]
        assert {"/traces/{trace_id}", "/sessions/{session_id}", "/runs", "/schedules", "/overview"} <= {*paths}
        for name, id_ in ids.items():
            paths = [path.replace(name, id_) for path in paths]
        paths = [f"{path}?{fixed}" if path in ("/incidents",) else path for path in paths]
        paths += ["/openapi.json", "/traces?agent=nobody", "/traces?limit=0", "/traces/x", "/nowhere"]
        for path in paths:
            here, there = await doors.here.get(path), await doors.there.get(path)
            assert (there.status_code, there.content) == (here.status_code, here.content), path
            assert there.headers == here.headers, path
        found = (await doors.there.get("/overview")).json()
        assert "POST /runs" in found["can"]
        assert (found["spent_usd"], found["component_errors"][0]["name"]) == (1.25, "mine")


async def test_committed_changes_are_visible_and_a_current_etag_gets_304(
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


async def test_a_read_error_in_the_collector_gives_503(beside: Callable[..., Any]) -> None:
    def broken() -> dict[tuple[str, str], int]:
        raise sqlite3.OperationalError("disk I/O error")

    async with beside(errors=broken) as doors:
        answer = await doors.there.get("/overview")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert "disk I/O error" in answer.json()["detail"]


async def test_writes_are_forwarded_to_the_front_process(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        asked = {"metrics": ["trace.tool_loop"], "name": "again"}
        begun = await doors.there.post("/runs", json=asked)
        assert begun.status_code == 201, begun.text
        run = f"/runs/{begun.json()['id']}"
        assert (await doors.there.post("/runs", json=asked | {"dry_run": True})).json()["traces"] == 60
        assert (await doors.there.post("/runs", json={"metrics": ["nothing"]})).status_code == 422
        made = (await doors.there.post("/schedules", json={"cron": "0 3 * * *", "run": asked})).json()
        headers = {"content-type": "application/json"}
        assert (await doors.there.delete(f"/schedules/{made['id']}", headers=headers)).status_code == 204
        await doors.there.post(f"{run}/cancel", json={})
        assert (await doors.there.get(run)).json()["state"] in ("cancelled", "done")
        assert (await doors.there.post("/annotations", content=b"x" * 70_000, headers=headers)).status_code == 413


async def test_a_write_that_is_not_allowed_is_denied(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        with pytest.raises(PermissionError, match="forget_sent"):
            await doors.reader.calls._handlers["write"](None, "forget_sent", ("logs", 9), {})


async def test_the_reader_process_starts_by_itself_if_a_run_is_pending(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        await doors.reader.look()
        assert doors.reader.calls.pid is None
        doors.store.runs.create(RunSpec(("trace.tool_loop",)).to_json()).result()
        await doors.reader.look()
        [run] = doors.store.runs.newest()
        await until(lambda: doors.store.runs.find(run.id).state == "done", 60)
        assert doors.store.runs.find(run.id).total == 60


async def test_waiting_requests_get_503_if_the_process_is_killed_and_the_next_request_succeeds(
    beside: Callable[..., Any],
) -> None:
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 200
        first = doors.reader.calls.pid
        await until(lambda: doors.reader.calls.busy == 0, 60)
        os.kill(first, signal.SIGSTOP)
        asking = [asyncio.ensure_future(doors.there.get("/traces")) for _ in range(3)]
        await until(lambda: doors.reader.calls.busy == 3, 60)
        os.kill(first, signal.SIGKILL)
        for answer in await asyncio.gather(*asking):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "try again" in answer.json()["detail"]
        await until(lambda: not doors.reader.calls.pause, 60)
        assert (await doors.there.get("/traces")).status_code == 200
        assert doors.reader.calls.pid not in (first, None)
        counts = doors.telemetry.counts()
        assert counts["pandaeval.readers", "ended", "signal_9"] == 1
        assert doors.telemetry.total("pandaeval.readers", "started") == 2


async def test_a_process_that_hangs_is_ended(beside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 200
        monkeypatch.setattr(reader_process, "_PATIENCE_S", 0.05)
        os.kill(doors.reader.calls.pid, signal.SIGSTOP)
        assert (await doors.there.get("/traces")).status_code == 503
        await until(lambda: doors.telemetry.total("pandaeval.readers", "ended") == 1, 60)


@pytest.mark.parametrize(("method", "path"), [("GET", "/traces"), ("POST", "/mcp")])
async def test_a_single_hanging_request_gets_503(
    beside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """Other requests keep the process alive."""

    async def hangs(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async with beside() as doors:
        monkeypatch.setattr(reader_process, "_PATIENCE_S", 0.05)
        monkeypatch.setattr(doors.reader.calls, "ask", hangs)
        url = path if path == "/traces" else f"http://127.0.0.1:4328{path}"
        answer = await doors.there.request(method, url, json={} if method == "POST" else None)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


async def test_a_process_that_cannot_start_gives_503_and_is_counted(
    beside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_process, "MODULE", "pandaeval_collector.not_there")
    async with beside() as doors:
        assert (await doors.there.get("/traces")).status_code == 503
        assert doors.telemetry.total("pandaeval.readers", "not_started") == 1


async def test_a_response_waits_for_a_slow_client_and_is_dropped_on_disconnect(beside: Callable[..., Any]) -> None:
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
        scope |= {"path": "/api/v1/results", "raw_path": b"/api/v1/results", "root_path": "", "http_version": "1.1"}
        asking = asyncio.ensure_future(doors.reader(scope, receive, send))
        await until(lambda: len(sent) == 2, 60)
        assert doors.reader.calls._running is not None
        [asked] = doors.reader.calls._running[1]._asked.values()
        assert (await doors.there.get("/traces?limit=1")).status_code == 200  # other requests are answered meanwhile
        assert sent[1]["more_body"] is True
        assert len(sent[1]["body"]) == 64 << 10
        assert not asked.inbox.qsize(), "only the chunk that the client has not taken is in flight"
        hung_up.set()
        reads.release()
        await asking
        assert sent[-1]["more_body"] is True, "the response was not finished"
        await until(lambda: not doors.reader.calls.busy, 60)
        assert (await doors.there.get("/traces?limit=1")).status_code == 200


async def test_the_first_client_may_disconnect_while_the_process_starts(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        first, second = (asyncio.ensure_future(doors.there.get("/traces?limit=1")) for _ in range(2))
        await until(lambda: doors.reader.calls._starting is not None, 60)
        first.cancel()
        assert (await second).status_code == 200
        assert doors.telemetry.total("pandaeval.readers", "started") == 1


async def test_the_reader_process_can_be_closed_while_it_starts(beside: Callable[..., Any]) -> None:
    async with beside() as doors:
        asking = asyncio.ensure_future(doors.there.get("/traces?limit=1"))
        await until(lambda: doors.reader.calls._starting is not None, 60)
        await doors.reader.calls.close()
        assert doors.reader.calls.pid is None
        await asyncio.wait([asking])
        assert (await doors.there.get("/traces?limit=1")).status_code == 503
