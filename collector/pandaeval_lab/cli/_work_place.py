"""Where runs are done: at a running collector, or in a data directory that none works on, into which traces of files
and trace stores are read."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._hand import config_option, declared
from pandaeval_collector.cli._output import console, progress
from pandaeval_collector.cli._run_place import ApiClient, Place, over_http
from pandaeval_collector.config import Config, masked
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store import Store, StoreBusyError
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.finding import Finder
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.cli._tables import print_problems
from pandaeval_lab.replay.trace_files import TraceFiles

_WORK = "Work in this data directory instead, such as that of a collector that is stopped."
_WorkedOn = Annotated[Path | None, typer.Option("--store", metavar="FOLDER", help=_WORK)]
_Configured = Annotated[Path | None, config_option("With --store: configuration file (YAML), else variables alone.")]


@dataclass(frozen=True, slots=True)
class WorkPlace(Place):
    """Where a command works: at a running collector, or in a data directory (``store``) with a configuration."""

    store: _WorkedOn = None
    config: _Configured = None

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
        config = resolve_config(self.config, {"store.path": str(self.store)}).config
        if not new and not (self.store / FILE_NAME).is_file():
            raise UserError(
                f"there is no store in {self.store}: name a collector's data directory, or read traces with --from"
            )
        try:
            store = Store(self.store, config.store.durability, config.store.max_bytes)
        except StoreBusyError as error:
            raise UserError(
                f"a collector, or another command, works in {self.store}, and runs of two would get in each other's "
                "way: leave --store out and let that collector do it (--url says where it is), or stop it first"
            ) from error
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(f"{self.store} cannot be opened: {error}") from error
        with closing(store), LocalApi(store, config) as here:
            yield here


at_work = in_place_of("place", declared(WorkPlace), WorkPlace)
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


def watched(api: ApiClient, run_id: str, every: float = 1.0) -> dict[str, Any]:
    """Waits until a run has ended, with a progress bar on a terminal. Returns the run as it is then."""
    with progress(console(stderr=True), f"run {run_id}") as tell:
        while True:
            run: dict[str, Any] = api.get(f"/runs/{run_id}")
            if run["ended_at"] is not None:
                return run
            tell(run["done"] + run["failed"], run["traces"])
            api.pause(every)


_HOLDS, _FILES = "holds", "files"
"""Key and value by which a store says that these commands alone put traces into it."""
_MOST_NAME = 400
_LIMIT = 2000
_FOR_EVER_S = 1e12


def take_in(store: Store, config: Config, sources: Sequence[str]) -> str:
    """Reads those traces of ``sources`` that ``store`` does not hold yet into it, without scoring them. Returns the
    pair ``key=value`` by which runs find all traces of this reading. Raises ``UserError`` for input that cannot be
    read, and for the store of a collector, whose lists would show these traces."""
    holds = store.reads.get(_HOLDS)
    if holds is None and (store.reads.decided_ids() or next(store.reads.open_chunks(), None)):
        raise UserError(
            f"{store.path} is the data directory of a collector, whose lists would show what is read with --from: name "
            "another one with --store, a new one for instance"
        )
    store.put(_HOLDS, _FILES).result()
    _tidy(store)
    store.discard([chunk.id for chunk in store.reads.open_chunks()]).result()  # of a reading that was broken off
    seen: set[bytes] = set()
    known = store.reads.decided_ids()

    def is_new(trace_id: bytes) -> bool:
        seen.add(trace_id)
        return trace_id not in known

    # Every metric and the judge are switched off: only the runs that follow score.
    nothing = {
        "metrics": config.metrics.model_copy(update={"enabled": ()}),
        "judge": config.judge.model_copy(update={"model": None}),
    }
    unscored = config.model_copy(update=nothing)
    with TraceFiles(close_rules(config), store=store, wants=is_new) as run:
        run.add_all(requests(sources))
        for _ in replay(run, evaluator(unscored)):
            pass
        print_problems(console(stderr=True), run.read.problems, run.read.bad)
    names = one_printable_line(", ".join(masked(each) if "://" in each else each for each in sources))[:_MOST_NAME]
    pair = f"pandaeval.source={names} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    found = store.tag(pair, seen).result()
    _tidy(store)
    if not found:
        raise UserError("no agent traces in this input: `pandaeval inspect` shows what was understood")
    before = len(seen & known)
    typer.echo(
        f"read {len(seen):,} traces, {found:,} of them of agents"
        + (f"; {before:,} were here before" if before else ""),
        err=True,
    )
    return pair


def _tidy(store: Store) -> None:
    """Compresses the spans of agents' traces, and deletes those of all others."""
    now = store.clock.calendar() + 1.0
    while store.kept.keep(0.0, now):
        pass
    while store.forget(0.0, _FOR_EVER_S, now, limit=_LIMIT, judged_s=_FOR_EVER_S).result() >= _LIMIT:
        pass
