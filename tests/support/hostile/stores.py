"""What is done to the files of a collector, while it runs or behind its back."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from support.collector import CollectorProcess, snapshot
from support.made_traces import Composer
from support.senders import GrpcDoor, HttpDoor

_OPEN = {"PANDAEVAL_CLOSE__QUIET": "20m", "PANDAEVAL_CLOSE__IDLE": "20m"}
"""Traces stay open: what is stored is what was acknowledged."""


def unlinked(folder: Path, scale: int) -> Iterator[str]:
    """Everything in the data directory is unlinked while senders go on."""
    with CollectorProcess(folder) as collector:
        collector.start()
        composer, doors = Composer(1), (GrpcDoor(collector.grpc), HttpDoor(collector.http))
        _send(composer, doors, 50 * scale)
        for file in collector.data.iterdir():
            file.unlink()
        gone, late = time.monotonic(), 0
        while time.monotonic() < gone + 3:
            late += len(_send(composer, doors, 2))
        if late:
            yield f"{late} traces were acknowledged after the store was gone"
        if collector.running() and _ready(collector):
            yield "/readyz says that it is ready without a store"
        if "store" not in collector.log():
            yield "the log does not name the store"
        collector.kill()
        collector.start()
        if not _send(composer, (HttpDoor(collector.http),), 1):
            yield "after a restart it takes nothing"


def unlocked(folder: Path, scale: int) -> Iterator[str]:
    """The lock file is removed and a second collector started on the same directory."""
    for number in range(scale):
        with (
            CollectorProcess(folder / f"{number}-first") as first,
            CollectorProcess(folder / f"{number}-second") as two,
        ):
            first.start()
            (first.data / "lock").unlink()
            two.settings["PANDAEVAL_DATA"] = str(first.data)
            two.launch()
            until = time.monotonic() + 8
            both = False
            while time.monotonic() < until:
                time.sleep(0.2)
                answers = [bool(_send(Composer(3), (HttpDoor(each.http),), 1)) for each in (first, two)]
                both |= all(answers)
            if both:
                yield "two collectors accept for one store"


def damaged(folder: Path, scale: int) -> Iterator[str]:
    """The files of a killed collector are damaged in many ways; whatever is missing then is said at the next start."""
    with CollectorProcess(folder / "sound", _OPEN) as collector:
        collector.start()
        acknowledged = _send(Composer(2), (GrpcDoor(collector.grpc), HttpDoor(collector.http)), 60)
        shutil.copytree(collector.data, folder / "older")
        acknowledged |= _send(Composer(3), (GrpcDoor(collector.grpc), HttpDoor(collector.http)), 60)
        collector.kill()
        shutil.copytree(collector.data, folder / "before")
        chance = random.Random(scale)
        for number, (name, damage) in enumerate(_damages(folder, chance, 6 * scale)):
            case = folder / f"case-{number}"
            shutil.copytree(folder / "before", case / "data")
            damage(case / "data")
            yield from (f"{name}: {each}" for each in _opened(case, acknowledged))
            shutil.rmtree(case)


def _opened(case: Path, acknowledged: set[bytes]) -> Iterator[str]:
    """Starts a collector on damaged files: it starts, and says so if something acknowledged is missing."""
    with CollectorProcess(case, _OPEN) as collector:
        try:
            collector.start()
        except AssertionError as error:
            yield f"it does not start: {error}"
            return
        log = collector.log()
        collector.kill()
        with snapshot(collector.data, case / "scratch") as database:
            kept = {row[0] for row in database.execute("SELECT trace_id FROM chunks UNION SELECT trace_id FROM traces")}
        missing = len(acknowledged - kept)
        if missing and not any(word in log for word in ("missing", "put aside")):
            yield f"{missing} acknowledged traces are missing, and nothing is said"
        if not missing and "missing" in log:
            yield "something is said to be missing, and nothing is"


Damage = Callable[[Path], None]


def _damages(folder: Path, chance: random.Random, places: int) -> Iterator[tuple[str, Damage]]:
    fixed: Mapping[str, Damage] = {
        "the log is gone": lambda data: (data / "pandaeval.db-wal").unlink(),
        "the log is empty": lambda data: os.truncate(data / "pandaeval.db-wal", 0),
        "the file is empty": lambda data: os.truncate(data / "pandaeval.db", 0),
        "the file is gone": lambda data: (data / "pandaeval.db").unlink(),
        "both are gone": lambda data: _unlink_all(data, "pandaeval.db*"),
        "the index of the log is gone": lambda data: _unlink_all(data, "pandaeval.db-shm"),
        "an older copy": lambda data: _older(folder, data),
        "nothing": lambda data: None,
    }
    yield from fixed.items()
    for _ in range(places):
        part = chance.random()
        yield f"the log is cut at {part:.2f}", lambda data, part=part: _cut(data / "pandaeval.db-wal", part)  # type: ignore[misc]
        yield f"the log is spoilt at {part:.2f}", lambda data, part=part: _spoil(data / "pandaeval.db-wal", part)  # type: ignore[misc]
        yield f"the file is cut at {part:.2f}", lambda data, part=part: _cut(data / "pandaeval.db", part)  # type: ignore[misc]
        yield f"the file is spoilt at {part:.2f}", lambda data, part=part: _spoil(data / "pandaeval.db", part)  # type: ignore[misc]


def _unlink_all(data: Path, pattern: str) -> None:
    for file in data.glob(pattern):
        file.unlink()


def _older(folder: Path, data: Path) -> None:
    """As from a backup: the database alone, the mark of what was acknowledged stays."""
    _unlink_all(data, "pandaeval.db*")
    with (
        contextlib.closing(sqlite3.connect(folder / "older" / "pandaeval.db")) as source,
        contextlib.closing(sqlite3.connect(data / "pandaeval.db")) as target,
    ):
        source.backup(target)


def _cut(file: Path, part: float) -> None:
    os.truncate(file, int(file.stat().st_size * part))


def _spoil(file: Path, part: float) -> None:
    with file.open("r+b") as opened:
        opened.seek(int(file.stat().st_size * part))
        opened.write(b"\xa5" * 64)


def _send(composer: Composer, doors: tuple[GrpcDoor | HttpDoor, ...], number: int) -> set[bytes]:
    """The ids of the traces that were acknowledged at the first attempt."""
    found = set()
    for index in range(number):
        trace = composer.trace()
        if doors[index % len(doors)].send(trace.request()).acknowledged:
            found.add(trace.trace_id)
    return found


def _ready(collector: CollectorProcess) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{collector.health_port}/readyz", timeout=5).status == 200)
    except urllib.error.URLError:
        return False
