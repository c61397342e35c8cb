"""Where the spans of a run arrive: a collector in a process of its own, with a store that goes when it goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.config import Config, load
from pandaeval_collector.store import StoreReader
from pandaeval_lab.replay.trace_files import traces_by_start

_FREE = "127.0.0.1:0"
_MODULE = "pandaeval_lab.running.collector_main"


class Door:
    """A collector that takes spans in and scores nothing. An asynchronous context manager; on one event loop.

    ``given``: with it the collector listens where ``server`` of that configuration says, for agents that were started
    before; without it on free ports of this machine."""

    def __init__(self, given: Config | None = None) -> None:
        self._fixed = given is not None
        self._folder = tempfile.TemporaryDirectory(prefix="pandaeval-cases-")
        self._data = Path(self._folder.name) / "data"
        settings = {
            "SERVER__GRPC": _FREE if given is None else given.server.grpc,
            "SERVER__HTTP": _FREE if given is None else given.server.http,
            "SERVER__HEALTH": _FREE,
            # Another process may send its spans some seconds after they ended.
            "CLOSE__QUIET": "1s" if given is None else f"{given.close.quiet:g}s",
            "SESSION__IDLE": "1s",
            "LATE__WINDOW": "1000h",
            "STORE__PATH": str(self._data),
        }
        config = load(None, {f"PANDAEVAL_{key}": value for key, value in settings.items()})
        config = config.model_copy(update={"metrics": config.metrics.model_copy(update={"enabled": ()})})
        self._calls = Calls("the collector of this run", _MODULE, config, os.environ, silent=True)
        self.grpc = self.http = ""
        """Host and port of the listeners."""

    async def __aenter__(self) -> Door:
        try:
            self.grpc, self.http = await self._calls.ask("listening")
        except ChildStartError as error:
            await self.__aexit__()
            cure = ": stop what listens there, or set server.grpc and server.http" if self._fixed else ""
            raise UserError(f"{error}{cure}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._calls.close()
        self._folder.cleanup()

    async def is_complete(self, trace_ids: Collection[str], least: int) -> bool:
        """Returns whether every trace that came is closed, and each of ``trace_ids`` has at least so many spans."""
        if not await self._calls.ask("at_rest"):
            return False
        items = self.items()
        return all(items.get(id_, 0) >= least for id_ in trace_ids)

    def items(self) -> Mapping[str, int]:
        """Returns the number of spans and events of each trace that came, copies counted, by its id."""
        return {id_.hex(): items for id_, _, _, items in traces_by_start(StoreReader(self._data))}

    def requests(self, without: Collection[str], only: Collection[str] | None = None) -> Iterator[bytes]:
        """Yields what came as OTLP requests, earliest trace first, but for the traces ``without``, or ``only`` some."""
        reads = StoreReader(self._data)
        for trace_id, chunks, _, _ in traces_by_start(reads):
            if trace_id.hex() not in without and (only is None or trace_id.hex() in only):
                for chunk in chunks:
                    yield reads.chunks([chunk])[chunk][1]
