"""What a collector's HTTP listener shows beside taking spans in."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp

from pandaeval_collector.api.hosts import KnownHosts
from pandaeval_collector.api.lazy import Lazy
from pandaeval_collector.api.reading import Reads
from pandaeval_collector.api.work import Work
from pandaeval_collector.runs import Runs
from pandaeval_collector.store.finding import Finder

API = "/api/v1"


class Lookouts:
    """The routes, and the reads behind them. On one event loop."""

    def __init__(self, path: Path, work: Work, hosts: Collection[str] | None, runs: Runs) -> None:
        """``path``: the data directory. ``hosts``: names under which it may be asked beside addresses and localhost;
        ``None``: any, where a token is demanded."""
        self._reads = Reads(Finder(path))
        self._work, self._runs = work, runs
        app: ASGIApp = Lazy(self._api)
        self.routes: list[BaseRoute] = [Mount(API, app if hosts is None else KnownHosts(app, hosts))]

    def close(self) -> None:
        """Ends the reads."""
        self._reads.close()

    def _api(self) -> ASGIApp:
        from pandaeval_collector.api.app import api_app  # FastAPI: see Lazy

        return api_app(self._reads, self._work, _version(), self._runs)


def _version() -> str:
    try:
        return version("pandaeval-otel")
    except PackageNotFoundError:
        return ""
