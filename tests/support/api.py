"""The HTTP API over its own store, without a listener."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import uvicorn
from starlette.types import ASGIApp

from pandaeval_collector.app.reader_main import application
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.listener import shown
from pandaeval_collector.store import Store
from pandaeval_collector.store.finding import Finder


class ReadInterfaces:
    """API, MCP and page over a data directory, served in this process."""

    def __init__(self, folder: Path, work: Work, hosts: Collection[str] | None = (), runs: Any = None) -> None:
        self._reads = Reads(Finder(folder))
        self.routes = shown(application(self._reads, work, runs), hosts, work.page is not None)
        self.close = self._reads.close


@contextmanager
def served(folder: Path, token: str | None = None, hosts: Collection[str] = ()) -> Iterator[ASGIApp]:
    """Return the application with an empty store in ``folder``; ``hosts``: ``server.allowed_hosts``."""
    store = Store(folder)
    work = Work(store, metrics=lambda: [(metric, 0.5) for metric in registry(()).values()])
    lookouts = ReadInterfaces(folder, work, hosts if token is None else None)
    try:
        yield otlp_http_app(cast(Any, None), DoorSettings(Admission(1 << 20), token=token), routes=lookouts.routes)
    finally:
        lookouts.close()
        store.close()


@contextmanager
def serve_on_port(app: ASGIApp) -> Iterator[str]:
    """Serve it on a free loopback port; return its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def asking(app: ASGIApp, **options: Any) -> httpx.AsyncClient:
    """Return a client of the application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:4328", **options)
