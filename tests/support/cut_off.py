"""Cuts a busy collector's power at any disk step, and checks its promises."""

from __future__ import annotations

import bisect
import contextlib
import random
import shutil
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pandaeval_lab.replay.files import Request
from support.collector import CollectorProcess, snapshot
from support.database import open_database
from support.kills import differences, standing_results, uninterrupted
from support.oracle import Oracle, SpanKey, Told, problems_of
from support.power_cuts import Disk, Step, logged, steps
from support.stored import exported_problems, requests_by_trace, series_problems

_LOAD_S, _PAUSE, _REST_S = 2.0, 0.1, 900.0
_LOST = "acknowledged spans are lost"
_ALARMS = ("acknowledged data is missing", "put aside", "nothing is accepted")


class Acknowledged(set[SpanKey]):
    """Acknowledged spans, with times."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []
        self.keys_at: list[SpanKey] = []

    def update(self, *keys: Iterable[SpanKey]) -> None:
        now = time.monotonic()
        for key in keys[0]:
            if key not in self:
                self.add(key)
                self.at.append(now)
                self.keys_at.append(key)

    def before(self, moment: float) -> set[SpanKey]:
        return set(self.keys_at[: bisect.bisect_left(self.at, moment)])


@dataclass(frozen=True, slots=True)
class Recorded:
    """Disk operations and acknowledgements of two collector lives."""

    folder: Path
    steps: list[Step]
    told: Told
    acknowledged: Acknowledged


@dataclass(slots=True)
class Cuts:
    """Outcome of the cuts. ``lossy``: cuts with loss. ``started``: restarts. ``owed``: acknowledged spans."""

    cuts: int = 0
    lossy: int = 0
    owed: int = 0
    started: int = 0
    steps: int = 0
    problems: list[str] = field(default_factory=list)


def record(folder: Path, library: Path, seed: int, durability: str) -> Recorded:
    """Record a loaded collector: stop, restart, kill. ``folder`` is empty."""
    log, watched = folder / "disk.rec", folder / "watched"
    settings = {"PANDAEVAL_STORE__DURABILITY": durability} | logged(library, log, watched)
    acknowledged = Acknowledged()
    with (
        CollectorProcess(watched, settings, fresh=True, own_children=True) as collector,
        Oracle(collector.grpc, collector.http, seed, pause=_PAUSE) as oracle,
    ):
        oracle.told.acknowledged = acknowledged
        collector.start()
        time.sleep(_LOAD_S)
        collector.stop()
        collector.start()
        time.sleep(_LOAD_S)
        collector.kill()
        oracle.stop()
    return Recorded(watched, list(steps(log)), oracle.told, acknowledged)


def cut(recorded: Recorded, cuts: int, seed: int, scratch: Path, start_each: int) -> Cuts:
    """Cut power at seeded steps; every ``start_each``-th cut starts a collector (0: never)."""
    chance, disk, found = random.Random(seed), Disk(), Cuts(steps=len(recorded.steps))
    places = sorted(chance.choices(range(len(recorded.steps)), k=cuts))
    done = 0
    for number, place in enumerate(places):
        for step in recorded.steps[done : place + 1]:
            disk.do(step)
        done = max(done, place + 1)
        ends = recorded.steps[done].at if done < len(recorded.steps) else float("inf")
        left = scratch / str(number)
        for path, content in disk.after_a_cut(chance).items():
            file = left / Path(path).relative_to(recorded.folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        problems = _look(left, recorded, recorded.acknowledged.before(ends), found)
        if start_each and number % start_each == start_each - 1 and (left / "data").exists():
            problems += _start(left, recorded)
            found.started += 1
        found.cuts += 1
        if problems:
            found.problems += [f"cut {number} at step {place}, see {left}: {each}" for each in problems]
            return found
        shutil.rmtree(left, ignore_errors=True)
    return found


def _look(left: Path, recorded: Recorded, owed: set[SpanKey], found: Cuts) -> list[str]:
    deliveries = Told(recorded.told.sent, owed, sessions=recorded.told.sessions)
    problems = [_LOST] if owed else []
    if (left / "data/pandaeval.db").exists():
        with snapshot(left / "data", left / "scratch") as database:
            if database.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'results'").fetchone()[0]:
                problems = problems_of(deliveries, database) + _short(left / "results.jsonl", database)
                problems += series_problems(database) if _is_counted(database) else []
    others = [each for each in problems if _LOST not in each]
    found.lossy += len(problems) > len(others)
    found.owed += len(owed)
    return others


def _is_counted(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT count(*) FROM results").fetchone()[0])


def _short(results: Path, database: sqlite3.Connection) -> list[str]:
    """Return whether the results file is shorter than recorded."""
    row = database.execute("SELECT json_extract(value, '$.position') FROM meta WHERE key = 'cursor:jsonl'").fetchone()
    noted = int(row[0] or 0) if row else 0
    length = results.stat().st_size if results.exists() else 0
    return [f"the file of results has {length} bytes of {noted} that the store takes for written"] * (length < noted)


def _start(left: Path, recorded: Recorded) -> list[str]:
    """Start a collector on the files and return its problems."""
    with CollectorProcess(left, name="after") as collector:
        collector.start()
        collector.until(collector.at_rest, "at rest", _REST_S)
        problems = [f"{value:.0f} items have no fate" for value in [collector.gauge("accounting_residual")] if value]
        collector.stop()
        log = collector.log_file.read_text(errors="replace")
        problems += [f"the log says {alarm!r}" for alarm in _ALARMS if alarm in log]
        with open_database(collector.data / "pandaeval.db") as database:
            problems += problems_of(Told(sent=recorded.told.sent, sessions=recorded.told.sessions), database)
            with contextlib.suppress(FileNotFoundError):  # there may be no results file
                problems += exported_problems(database, collector.results_file)
            expected = uninterrupted(Request(False, each) for each in requests_by_trace(database))
        return problems + differences(standing_results(collector), expected)
