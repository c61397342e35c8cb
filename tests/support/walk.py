"""Counts calls between packages while two traces are processed.

Each call or return into another package counts as a change.

    python tests/support/walk.py [--functions 40]

``--functions`` lists the most frequent cross-package functions with callers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_otel.assembly import CloseRules
from pandaeval_otel.model import Trigger

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.line_here import LineHere
from support.made_traces import Composer

PACKAGES = ("pandaeval_collector", "pandaeval_otel")
_SHARED = frozenset({"collector.base", "otel.base", "otel.model"})
_NEVER = CloseRules(quiet=86_400, idle=86_400, max_age=86_400)


class Walk:
    """Calls and returns by thread. ``changes``: counts by package pair."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.changes: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls into another package by package and function."""
        self._at: dict[int, str] = {}
        self._rooms: defaultdict[str, str | None] = defaultdict()

    @property
    def rooms(self) -> set[str]:
        return {room for pair in self.changes for room in pair}

    def follow(self, frame: FrameType, event: str, _: Any) -> None:
        """Handle a ``sys.setprofile`` event."""
        if event == "call":
            before = self._at.get(threading.get_ident())
            self._enter(frame.f_code.co_filename)
            room = self._rooms[frame.f_code.co_filename]
            if room is not None and before not in (None, room):
                self.calls[str(before), f"{room}: {_name(frame)}"] += 1
        elif event == "return" and frame.f_back is not None:
            self._enter(frame.f_back.f_code.co_filename)

    def _enter(self, file: str) -> None:
        if file not in self._rooms:
            self._rooms[file] = _room(file)
        room = self._rooms[file]
        if room is None:
            return
        self.files.add(file)
        thread = threading.get_ident()
        before = self._at.get(thread, room)
        if before != room:
            self.changes[before, room] += 1
        self._at[thread] = room


def _room(file: str) -> str | None:
    """Return the package of a file, or ``None``."""
    for package in PACKAGES:
        _, found, inside = file.rpartition(f"/{package}/")
        if found and "/" in inside and not inside.startswith("_proto"):
            return f"{package.removeprefix('pandaeval_')}.{inside.partition('/')[0]}"
    return None


def _name(frame: FrameType) -> str:
    name = frame.f_code.co_name if sys.version_info < (3, 11) else frame.f_code.co_qualname
    return f"{Path(frame.f_code.co_filename).stem}.{name}"


async def _walk(folder: Path, watch: Walk | None) -> None:
    store = Store(folder)
    line = Line(store.reads, Evaluator(load("embedded")), Emitter(("logs", "traces")))
    pipeline = Pipeline(store, LineHere(line), Timing(close=_NEVER))
    composer = Composer(1)
    requests = [composer.trace(3).request().SerializeToString() for _ in range(2)]
    if watch is not None:
        threading.setprofile_all_threads(watch.follow) if sys.version_info >= (3, 12) else sys.setprofile(watch.follow)
    try:
        for request in requests:
            await pipeline.traces(request)
        await pipeline.decide_all(Trigger.ROOT_ENDED)
        await pipeline.close_all(Trigger.IDLE)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    await pipeline.stop()
    store.close()


def walked() -> Walk:
    """Return the second walk, after imports and caches."""
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_walk(Path(folder) / "first", None))
        threading.setprofile(walk.follow)  # for threads that begin from now on
        asyncio.run(_walk(Path(folder) / "second", walk))
        threading.setprofile(None)
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=0, help="functions of other packages to list (default: 0)")
    parser.add_argument("--total", action="store_true", help="print the total number of changes only")
    options = parser.parse_args()
    walk = walked()
    total = sum(walk.changes.values())
    if options.total:
        print(total)
        return
    shared = sum(times for pair, times in walk.changes.items() if _SHARED & {*pair})
    print(f"{len(walk.files)} files, {len(walk.rooms)} packages, {total} changes between packages,")
    print(f"{shared} of them into or out of {', '.join(sorted(_SHARED))}")
    pairs: Counter[tuple[str, ...]] = Counter()
    for pair, times in walk.changes.items():
        pairs[tuple(sorted(pair))] += times
    for packages, times in pairs.most_common(15):
        print(f"{times:5} {' – '.join(packages)}")
    for (caller, function), times in walk.calls.most_common(options.functions):
        print(f"{times:5} {function}, from {caller}")


if __name__ == "__main__":
    main()
