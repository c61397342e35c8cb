"""Makes drills in a running collector at their times, and keeps the last one: as gauges, and as a file of the data
directory that ``pandaeval drill --baseline`` takes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.runtime.child import Child, start_child
from pandaeval_collector.base.runtime.cron import next_time
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.drill.worker import DrillSetup
from pandaeval_collector.runs import wire
from pandaeval_collector.store.last_drill import FILE_NAME, last_drill

_log = logging.getLogger(__name__)

_GRACE_S = 60.0
"""A drill that does not end by itself is ended so long after its time limit."""
_NAME = "pandaeval.drill"
ANY = "any"
"""Stands for a metric: whether at least one noticed."""


class Drills:
    """The drills of one collector. On one event loop."""

    def __init__(self, setup: DrillSetup, cron: str, environ: Mapping[str, str], telemetry: Telemetry) -> None:
        self._setup, self._cron, self._environ, self._telemetry = setup, cron, environ, telemetry
        self._bell, self._stopping = Bell(), False
        self._child: Child | None = None
        self._task: asyncio.Task[None] | None = None
        self._last = last_drill(setup.store)
        self._tried_at = time.time() if self._last is None else self._last["at"]
        telemetry.family(lambda: {} if self._last is None else dict(_gauges(self._last)))

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pandaeval-drills")

    async def stop(self) -> None:
        """Ends a drill that is under way, and counts nothing of it."""
        self._stopping = True
        self._bell.ring()
        if self._child is not None:
            self._child.kill()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._stopping:
            due = next_time(self._cron, self._tried_at)
            assert due is not None, "the configuration takes no time table that is never due"
            if due > time.time():
                await self._bell.sleep(due - time.time())
                continue
            self._tried_at = time.time()
            outcome = await self._drill()
            if not self._stopping:
                self._telemetry.add("pandaeval.drills", outcome)

    async def _drill(self) -> str:
        """What became of one: ``ended``, ``empty`` (no stored run looks good) or ``failed``."""
        kind, found = await self._answer()
        if kind != "done":
            if not self._stopping:
                _log.error("the drill failed: %s", found)
            return "failed"
        if not found["good"]:
            return "empty"
        found["at"] = time.time()
        try:
            await asyncio.to_thread(_keep, self._setup.store, orjson.dumps(found))
        except OSError as error:
            _log.error("the drill cannot be kept: %s", error)
        self._last = found
        return "ended"

    async def _answer(self) -> tuple[str, Any]:
        try:
            child = self._child = await start_child("pandaeval_collector.drill.worker", self._environ)
        except OSError as error:
            return "broken", str(error)
        try:
            if self._stopping:
                return "broken", "the collector stops"
            child.send(wire.body(self._setup))
            async with asyncio.timeout(self._setup.seconds + _GRACE_S):
                said = await child.receive()
            answer: tuple[str, Any] = ("broken", "its process ended") if said is None else wire.unpacked(said)
            return answer
        except TimeoutError:
            return "broken", "it takes too long"
        finally:
            child.kill()
            await child.wait()
            self._child = None


def _keep(folder: Path, body: bytes) -> None:
    """Puts the file in place as a whole; only the collector's own user may read it."""
    beside = folder / f"{FILE_NAME}.new"
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(body)
    beside.replace(folder / FILE_NAME)


def _gauges(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Attributes], float]]:
    """By name and attributes. A fault of which there is no copy has no share, and 0 copies; where telemetry alone is
    missing, nothing is there to be noticed."""
    for name, fault in found["faults"].items():
        about = ("pandaeval.fault", name)
        yield (f"{_NAME}.copies", (about,)), float(fault["n"])
        if fault["n"] and fault["family"] != "telemetry":
            shares = {metric: fault["by_metric"].get(metric, {"share": 0.0}) for metric in found["untouched"]}
            for metric, share in {ANY: fault["noticed"], **shares}.items():
                yield (f"{_NAME}.noticed", (("gen_ai.evaluation.name", metric), about)), float(share["share"])
    for metric, share in found["untouched"].items():
        if share["share"] is not None:
            yield (f"{_NAME}.flagged", (("gen_ai.evaluation.name", metric),)), float(share["share"])
