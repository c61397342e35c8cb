"""Receives the spans of a run in a collector process with a temporary store: ``python -m
pandaeval_lab.running.receiver``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.peer import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.config import Config, load
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.store import StoreReader
from pandaeval_lab.cases.trial import MOCK_SCOPE, RUN_SCOPE
from pandaeval_lab.replay.trace_files import traces_by_start

_FREE = "127.0.0.1:0"


class SpanReceiver:
    """A collector that scores nothing. An asynchronous context manager, on an event loop.

    ``given``: listen on its ``server`` addresses; otherwise on free ports.
    """

    def __init__(self, given: Config | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pandaeval-cases-")
        self._data = Path(self._folder.name) / "data"
        settings = {
            **{f"SERVER__{name}": _FREE for name in ("GRPC", "HTTP", "HEALTH")},
            "CLOSE__QUIET": "1s",
            "SESSION__IDLE": "1s",
            "LATE__WINDOW": "1000h",
            "STORE__PATH": str(self._data),
        }
        if given is not None:
            settings |= {"SERVER__GRPC": given.server.grpc, "SERVER__HTTP": given.server.http}
            # Another process can send its spans seconds after they ended.
            settings["CLOSE__QUIET"] = f"{given.close.quiet:g}s"
        config = load(None, {f"PANDAEVAL_{key}": value for key, value in settings.items()})
        config = config.model_copy(update={"metrics": config.metrics.model_copy(update={"enabled": ()})})
        self._calls = Calls("the collector of this run", __name__, config, os.environ, silent=True)
        self._spoken, self._looked = set[str](), dict[str, int]()  # with the number of spans and events read
        self.grpc = self.http = ""
        """Host and port of the listeners."""

    async def __aenter__(self) -> SpanReceiver:
        try:
            self.grpc, self.http, _ = await self._calls.ask("state")
        except ChildStartError as error:
            await self.__aexit__()
            raise UserError(str(error)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._calls.close()
        self._folder.cleanup()

    async def is_complete(self, trace_ids: Collection[str], of_agent: Collection[str]) -> bool:
        """Return whether all traces are closed, ``trace_ids`` arrived, and the agent sent spans for ``of_agent``."""
        # Before the state, because new spans open a trace.
        have_come = self.items().keys() >= {*trace_ids} and self.traced_by_agent(of_agent) >= {*of_agent}
        return bool((await self._calls.ask("state"))[2]) and have_come

    def traced_by_agent(self, ids: Collection[str]) -> set[str]:
        for trace_id, chunks, _, items in traces_by_start(reads := StoreReader(self._data)):
            id_ = trace_id.hex()
            if id_ in ids and id_ not in self._spoken and self._looked.get(id_) != items:
                self._looked[id_] = items
                with suppress(ValueError, DecodeError):  # unreadable spans are ignored
                    trace = rebuilt(reads.chunks(chunks).values()).trace
                    if trace is not None and any(span.scope not in (RUN_SCOPE, MOCK_SCOPE) for span in trace.spans):
                        self._spoken.add(id_)
        return self._spoken & {*ids}

    def items(self) -> Mapping[str, int]:
        """Return the number of spans and events per trace id, copies counted."""
        return {id_.hex(): items for id_, _, _, items in traces_by_start(StoreReader(self._data))}

    def write(self, path: Path, ids: Collection[str]) -> None:
        """Write these traces' requests, each with its length in front, earliest first."""
        with path.open("wb") as file:
            for _, data in self._requests(ids):
                file.write(len(data).to_bytes(4, "big") + data)

    def naming(self, texts: Collection[str], ids: Collection[str]) -> dict[str, str]:
        """Return the traces that contain any of ``texts``, with the longest match."""
        known = sorted(texts, key=len)
        return {id_: text for id_, data in self._requests(ids) for text in known if text.encode() in data}

    def _requests(self, ids: Collection[str]) -> Iterator[tuple[str, bytes]]:
        reads = StoreReader(self._data)
        for trace_id, chunks, _, _ in traces_by_start(reads):
            for chunk in chunks if trace_id.hex() in ids else ():
                yield trace_id.hex(), reads.chunks([chunk])[chunk][1]


async def _open(config: Config, _: Peer) -> Handlers:
    from pandaeval_collector.app.collector import Collector  # the command's own process does not need it

    running = Collector(config, {})
    listening = await running.start()

    async def state(_: Any) -> tuple[str, str, bool]:
        return str(listening.grpc), str(listening.http), running.at_rest

    return {"state": state}


if __name__ == "__main__":
    serve_together(_open)
