"""Drills in a running collector at their times, each in a process of its own. The last one is kept: as gauges, and as a
file of the data directory that ``pandaeval drill --baseline`` takes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.runtime.calls import Pickled
from pandaeval_collector.base.runtime.child import Child, Parent, start_child
from pandaeval_collector.base.runtime.cron import next_time
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.drill.drill import Drill
from pandaeval_collector.drill.fault import faults
from pandaeval_collector.receivers.files import Request
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.last_drill import FILE_NAME, last_drill
from pandaeval_collector.store.wanted import Wanted
from pandaeval_otel.assembly import CloseRules

# Reads the runs that a data directory keeps, for a drill over them.
_PAGE = 200
_LIMIT_S = 120.0


def stored_requests(folder: Path, most: int | None = None) -> Iterator[Request]:
    """Yields the messages of the newest ``most`` runs (``None``: all), each with all of its session. Reads only, also
    while a collector runs."""
    finder = Finder(folder, limit_s=_LIMIT_S)
    given: set[str] = set()
    try:
        for trace_id, session in islice(_newest(finder), most):
            for each in (trace_id, *(finder.members(session) if session else ())):
                if each not in given:
                    given.add(each)
                    yield from (Request(logs, data) for logs, data in finder.contents(bytes.fromhex(each)))
    finally:
        finder.close()


def _newest(finder: Finder) -> Iterator[tuple[str, str | None]]:
    """Yields the ids of traces and of their sessions, newest first."""
    after = None
    while True:
        page = finder.traces(Wanted(), worst_first=False, after=after, limit=_PAGE)
        for row in page.rows:
            yield row.facts["id"], row.session
        after = page.next
        if after is None:
            return


_log = logging.getLogger(__name__)

_GRACE_S = 60.0
"""A drill that does not end by itself is ended so long after its time limit."""
_NAME = "pandaeval.drill"
ANY = "any"
"""Replaces a metric's name where any metric that noticed the fault counts."""


class Drills:
    """Runs the scheduled drills of one collector. On one event loop."""

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
        """Ends a drill that is under way, and discards it."""
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
        """Makes one drill. Returns ``ended``, ``empty`` (no stored run looks good) or ``failed``."""
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
            child = self._child = await start_child("pandaeval_collector.drill.scheduled", self._environ)
        except OSError as error:
            return "broken", str(error)
        try:
            if self._stopping:
                return "broken", "the collector stops"
            child.send(Pickled().pack(self._setup))
            async with asyncio.timeout(self._setup.seconds + _GRACE_S):
                said = await child.receive()
            answer: tuple[str, Any] = ("broken", "its process ended") if said is None else Pickled().unpack(said)
            return answer
        except TimeoutError:
            return "broken", "it takes too long"
        finally:
            child.kill()
            await child.wait()
            self._child = None


def _keep(folder: Path, body: bytes) -> None:
    """Writes the drill's file atomically; only the collector's own user may read it."""
    beside = folder / f"{FILE_NAME}.new"
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(body)
    beside.replace(folder / FILE_NAME)


def _gauges(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Attributes], float]]:
    """Yields gauges by name and attributes. A fault without a copy has 0 copies and no share, and one of telemetry has
    no share: there is nothing to notice."""
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


# The process of a scheduled drill: ``python -m pandaeval_collector.drill.scheduled``.
#
# It reads the collector's store and writes nothing there, so it may be killed at any time. One frame comes in on
# standard input, the setup; one leaves on standard output, what the drill found. When standard input ends, it ends.
_NICE = 19
"""The process runs at the lowest priority."""


@dataclass(frozen=True, slots=True)
class DrillSetup:
    """What the drill's process needs. ``store``: the data directory; ``runs``: how many of its newest to read;
    ``copies``: of each fault at most; ``seconds``: time after which the drill ends with what it has counted."""

    store: Path
    embedding: str
    settings: EvaluatorSettings
    rules: CloseRules
    runs: int
    copies: int
    seconds: float
    log_level: int


def drilled(setup: DrillSetup) -> dict[str, Any]:
    """Makes the drill and returns its findings, without examples: those would outlive what is stored of the runs."""
    end = time.monotonic() + setup.seconds
    scorer = Evaluator(load(setup.embedding), setup.settings)
    with Drill(lambda where: FileRun(scorer, setup.rules, where=where), faults(), setup.copies) as drill:
        for request in stored_requests(setup.store, setup.runs):
            drill.add(request)
        found = drill.run(is_over=lambda: time.monotonic() > end).to_dict()
    return {**found, "faults": {name: {**each, "examples": []} for name, each in found["faults"].items()}}


def main() -> None:
    """Makes one drill for the parent process."""
    parent = Parent(nice=_NICE)
    first = parent.receive()
    if first is None:
        return
    setup: DrillSetup = Pickled().unpack(first)
    set_up(setup.log_level)
    parent.listen(lambda frame: None)
    try:
        answer: Any = ("done", drilled(setup))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is nothing
        answer = ("broken", f"{type(error).__name__}: {error}"[:500])
    parent.send(Pickled().pack(answer))
    os._exit(0)  # the thread that reads holds standard input, over which the interpreter would stumble


if __name__ == "__main__":
    main()
