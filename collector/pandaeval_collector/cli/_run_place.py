"""Where commands find evaluation runs: at a running collector, or in a data directory that none works on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._output import console, progress
from pandaeval_collector.config import Config
from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store import Store, StoreBusyError
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.finding import Finder

# A running collector's API, as commands speak to it.
_ADDRESS = "Address of the collector's HTTP listener; else port 4328 of this machine."
Url = Annotated[str, typer.Option(metavar="URL", envvar="PANDAEVAL_URL", show_default=False, help=_ADDRESS)]
TokenEnv = Annotated[
    str, typer.Option(metavar="VARIABLE", help="Name of the variable that holds the token, where one is demanded.")
]
URL, TOKEN_ENV = "http://127.0.0.1:4328", "PANDAEVAL_TOKEN"


class ApiClient:
    """A blocking client of a collector's API, for commands that do one thing after the other. A context manager; errors
    of its requests are ``UserError``."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._asker.close())
        self._loop.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """Returns the JSON of the answer to a GET request."""
        return self._loop.run(self._asker.get(path, **parameters))

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        """Asks for a change and returns the answer's JSON. ``key``: repeated requests with it count as one."""
        return self._loop.run(self._asker.post(path, body, key))

    def delete(self, path: str) -> None:
        self._loop.run(self._asker.delete(path))

    def pause(self, seconds: float) -> None:
        """Waits for ``seconds``, or less if work that this process does has ended."""
        time.sleep(seconds)

    def pages(self, path: str, most: int | None = None, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Yields the items of a list, page by page, at most ``most``."""
        cursor, shown = None, 0
        while True:
            page = self.get(path, cursor=cursor, **parameters)
            for item in page["items"]:
                if most is not None and shown >= most:
                    return
                shown += 1
                yield item
            cursor = page.get("next")
            if cursor is None:
                return


def over_http(url: str, token_env: str) -> ApiClient:
    """Returns a client of a running collector."""
    return ApiClient(Asker.over_http(url, token_env))


_COLLECTOR: dict[str, tuple[Any, Any]] = {"url": (Url, URL), "token_env": (TokenEnv, TOKEN_ENV)}
at_collector = in_place_of("api", _COLLECTOR, over_http)
"""Gives a command the options that say where the collector is, in place of its parameter ``api``."""


def watched(api: ApiClient, run_id: str, every: float = 1.0) -> dict[str, Any]:
    """Waits until a run has ended, with a progress bar on a terminal. Returns the run as it is then."""
    with progress(console(stderr=True), f"run {run_id}") as tell:
        while True:
            run: dict[str, Any] = api.get(f"/runs/{run_id}")
            if run["ended_at"] is not None:
                return run
            tell(run["done"] + run["failed"], run["traces"])
            api.pause(every)


_LOOK = "Look into this data directory instead, whether or not a collector runs on it."
_WORK = "Work in this data directory instead, such as that of a collector that is stopped."
LookedAt = Annotated[Path | None, typer.Option("--store", metavar="FOLDER", help=_LOOK)]
_WorkedOn = Annotated[Path | None, typer.Option("--store", metavar="FOLDER", help=_WORK)]
_Configured = Annotated[
    Path | None, typer.Option("--config", help="With --store: configuration file (YAML), else variables alone.")
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command reads from: a running collector, or a data directory (``store``)."""

    url: str
    token_env: str
    store: Path | None

    @contextmanager
    def looking(self) -> Iterator[ApiClient]:
        """Opens the API for reading."""
        if self.store is None:
            with over_http(self.url, self.token_env) as api:
                yield api
            return
        from pandaeval_collector.show.api.app import alone  # who asks a collector needs no API of its own

        with alone(self.store) as app, ApiClient(Asker.within(app)) as stored:
            yield stored


placed = in_place_of("place", {**_COLLECTOR, "store": (LookedAt, None)}, Place)
"""Gives a command the options that say where it looks, in place of its parameter ``place``."""


@dataclass(frozen=True, slots=True)
class WorkPlace(Place):
    """Where a command works: at a running collector, or in a data directory (``store``) with a configuration."""

    config: Path | None

    @contextmanager
    def working(self, new: bool = False) -> Iterator[ApiClient]:
        """Opens the API for reading and changing: a collector's, or a :class:`LocalApi`. ``new``: make the data
        directory if it is missing. Raises ``UserError`` for one that another process works in."""
        if self.store is None:
            if self.config is not None:
                raise UserError("--config goes with --store: a running collector has its own configuration")
            with over_http(self.url, self.token_env) as api:
                yield api
            return
        with _opened(self.store, self.config, new) as (store, settings), LocalApi(store, settings) as here:
            yield here


at_work = in_place_of("place", {**_COLLECTOR, "store": (_WorkedOn, None), "config": (_Configured, None)}, WorkPlace)
"""Gives a command the options that say where it works, in place of its parameter ``place``."""


class LocalApi(ApiClient):
    """The API over a store that is open in this process, which itself does the one run that is begun."""

    def __init__(self, store: Store, config: Config) -> None:
        from pandaeval_collector.runs.manager import Runs
        from pandaeval_collector.show.api.app import api_app

        self._reads = Reads(Finder(store.path))
        self.store, self.config = store, config
        self._runs = Runs(store, config, os.environ, Telemetry(), by_owner=True)
        self._task: asyncio.Task[None] | None = None
        super().__init__(Asker.within(api_app(self._reads, Work(), "0", self._runs)))

    def __exit__(self, *error: object) -> None:
        if self._task is not None:
            self._task.cancel()
            self._loop.run(asyncio.wait({self._task}))
        super().__exit__(*error)
        self._reads.close()

    def begin(self, run_id: str) -> None:
        """Starts a run, which goes on during :meth:`pause`."""
        run = self._runs.store.runs.find(run_id)
        assert run is not None, "it was asked for"
        self._task = self._loop.get_loop().create_task(self._runs.engine.finish(run))

    def pause(self, seconds: float) -> None:
        if self._task is not None:
            self._loop.run(asyncio.wait({self._task}, timeout=seconds))
            if self._task.done():
                self._task.result()


@contextmanager
def _opened(folder: Path, path: Path | None, new: bool) -> Iterator[tuple[Store, Config]]:
    config = resolve_config(path, {"store.path": str(folder)}).config
    if not new and not (folder / FILE_NAME).is_file():
        raise UserError(f"there is no store in {folder}: name a collector's data directory, or read traces with --from")
    try:
        store = Store(folder, config.store.durability, config.store.max_bytes)
    except StoreBusyError as error:
        raise UserError(
            f"a collector, or another command, works in {folder}, and runs of two would get in each other's way: leave "
            "--store out and let that collector do it (--url says where it is), or stop it first"
        ) from error
    except (OSError, sqlite3.OperationalError) as error:
        raise UserError(f"{folder} cannot be opened: {error}") from error
    try:
        yield store, config
    finally:
        store.close()
