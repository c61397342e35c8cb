"""Kills a busy collector repeatedly, then checks its promises."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pandaeval_collector.config import load
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import CollectorProcess, DiedError, children_of, open_chunks, snapshot, standing
from support.oracle import Oracle, problems_of
from support.sink import Sink
from support.stored import exported_problems, requests_by_trace, series_problems, stored_spans

# How often a fail point may be passed before it kills. Each must be reached within a short life.
FAIL_POINTS = {
    "after_decode": 60,
    "before_commit": 60,
    "after_commit": 60,
    "after_ack": 60,
    "before_decide": 6,
    "after_decide": 6,
    "after_decision_commit": 6,
    "before_export": 5,
    "after_export": 5,
    "during_resume": 8,
}
WORKER_POINTS = {"in_worker": 4}
"""Fail points at which a worker dies."""
PATIENCE_S = 40.0
Results = dict[tuple[str, str], tuple[str, float | None]]


@dataclass(slots=True)
class Figures:
    """Figures of a batch.

    ``resent``: spans stored twice. ``rewritten``: repeated lines. ``redelivered``: repeated items. ``points``: kills
    by
    fail point.
    """

    cycles: int = 0
    acknowledged: int = 0
    sent: int = 0
    traces: int = 0
    results: int = 0
    resent: int = 0
    rewritten: int = 0
    redelivered: int = 0
    points: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"points": dict(sorted(self.points.items()))}

    def add(self, other: Figures) -> None:
        for name in ("cycles", "acknowledged", "sent", "traces", "results", "resent", "rewritten", "redelivered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.points.update(other.points)
        self.problems.extend(other.problems)


def at_random_times(cycles: int, chance: random.Random) -> list[str]:
    """Kill at random times after readiness (``time:``) or start (``start:``)."""
    return [
        f"start:{chance.uniform(0.1, 2.0):.3f}" if number % 4 == 3 else f"time:{chance.expovariate(1.0):.3f}"
        for number in range(cycles)
    ]


def at_fail_points(cycles: int, chance: random.Random) -> list[str]:
    """Kill at each fail point equally often, in random order."""
    points = FAIL_POINTS | WORKER_POINTS
    names = [list(points)[number % len(points)] for number in range(cycles)]
    chance.shuffle(names)
    return [f"{name}:{chance.randint(1, points[name])}" for name in names]


def of_workers(cycles: int, chance: random.Random) -> list[str]:
    """Kill workers at random times (``worker:``), then the collector."""
    return [f"worker:{chance.expovariate(2.0):.3f}" for _ in range(cycles)]


def run(
    folder: Path,
    seed: int,
    kills: Sequence[str],
    progress: Callable[[str], None] | None = None,
    pause: float = 0.01,
    workers: int = 1,
    fresh: bool | None = None,
) -> Figures:
    """Kill a collector repeatedly, then check it at rest. ``folder``: empty. ``workers``: scoring processes."""
    # On a slow machine, a batch takes longer than the ten minutes until spans are packed.
    settings = {"PANDAEVAL_LINE__WORKERS": str(workers), "PANDAEVAL_LATE__WINDOW": "6h"}
    figures = Figures()
    seen: dict[tuple[str, int], bytes] = {}
    with (
        Sink(seed, trouble=0.1) as sink,
        CollectorProcess(
            folder,
            settings | {"PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": sink.endpoint},
            fresh=fresh,
            own_children=workers > 0,
        ) as collector,
        Oracle(collector.grpc, collector.http, seed, pause=pause) as oracle,
    ):
        for number, kill in enumerate(kills):
            figures.points[_live_until(collector, kill)] += 1
            figures.cycles += 1
            with snapshot(collector.data, folder / "scratch") as database:
                figures.problems.extend(problems_of(oracle.told, database) if _has_tables(database) else [])
                figures.problems.extend(_lines_again(collector, seen))
                figures.rewritten += _unnoted(collector, database)
            if progress is not None:
                progress(f"{number + 1}/{len(kills)} {kill}, {len(oracle.told.acknowledged)} spans acknowledged")
            if figures.problems:
                return figures
        collector.start()
        oracle.stop()
        collector.until(collector.at_rest, "at rest", 120)
        if residual := collector.gauge("accounting_residual"):
            figures.problems.append(f"{residual:.0f} spans are in none of the books")
        if (code := collector.stop()) != 0:
            figures.problems.append(f"SIGTERM ended it with {code}")
        figures.problems.extend(_lines_again(collector, seen))
        figures.problems.extend(_false_alarms(collector))
        _last_word(figures, collector, oracle, sink)
    return figures


def _false_alarms(collector: CollectorProcess) -> list[str]:
    log = collector.log_file.read_text(errors="replace")
    alarms = ("acknowledged data is missing", "put aside", "no note of the last commit", "nothing is accepted")
    return [f"the log says {alarm!r} of a store that is whole" for alarm in alarms if alarm in log]


def _live_until(collector: CollectorProcess, kill: str) -> str:
    """Run the collector until its end; return the cause."""
    name, _, value = kill.partition(":")
    if name in ("time", "start"):
        collector.launch()
        if name == "time":
            collector.until(collector.ready, "ready")
        time.sleep(float(value))
        assert collector.running(), collector.log()
    elif name in ("worker", *WORKER_POINTS):
        name = _until_workers_died(collector, name, value)
    else:
        collector.launch(PANDAEVAL_FAIL_POINT=kill)
        try:
            assert collector.wait(PATIENCE_S) == -9, collector.log()
        except subprocess.TimeoutExpired:
            name = f"{name} (not met)"
    collector.kill()
    return name


def _until_workers_died(collector: CollectorProcess, name: str, value: str) -> str:
    """Run while workers die, then end the collector."""
    armed = {} if name == "worker" else {"PANDAEVAL_FAIL_POINT": f"{name}:{value}"}
    collector.start(**armed)
    if name != "worker":
        try:
            collector.until(lambda: _ended(collector) > 0, "without a process of the line", PATIENCE_S)
        except DiedError:
            raise
        except AssertionError:
            return f"{name} (not met)"
    for died in range(1, 3 if name == "worker" else 0):
        time.sleep(float(value))
        for child in workers_of(collector):
            os.kill(child, signal.SIGKILL)
        collector.until(lambda died=died: _ended(collector) >= died, "without a process of the line")  # type: ignore[misc]
        collector.until(lambda: bool(workers_of(collector)), "with another process of the line")
    time.sleep(0.2)
    return name


def _ended(collector: CollectorProcess) -> int:
    """Return how many workers died in this life."""
    counts = collector.counts().items()
    return sum(n for (name, outcome, _), n in counts if name == "workers" and outcome in ("ended", "not_started"))


def workers_of(collector: CollectorProcess) -> list[int]:
    return children_of(collector, b"line.main")


def _has_tables(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _lines_again(collector: CollectorProcess, seen: dict[tuple[str, int], bytes]) -> list[str]:
    """Check that repeated result lines have equal bytes."""
    if not collector.results_file.exists():
        return []
    text = collector.results_file.read_bytes()
    lines = text[: text.rfind(b"\n") + 1].splitlines()
    changed = 0
    for line, result in zip(lines, collector.results(), strict=True):
        changed += seen.setdefault((result["id"], result["revision"]), line) != line
    return [f"{changed} results were written again with other content"] if changed else []


def _unnoted(collector: CollectorProcess, database: sqlite3.Connection) -> int:
    if not collector.results_file.exists() or not _has_tables(database):
        return 0
    row = database.execute("SELECT json_extract(value, '$.position') FROM meta WHERE key = 'cursor:jsonl'").fetchone()
    return collector.results_file.read_bytes()[int(row[0] or 0) if row else 0 :].count(b"\n")


def _last_word(figures: Figures, collector: CollectorProcess, oracle: Oracle, sink: Sink) -> None:
    figures.acknowledged, figures.sent = len(oracle.told.acknowledged), len(oracle.told.sent)
    figures.redelivered = sink.repeated
    with snapshot(collector.data, collector.folder / "scratch") as database:
        problems = problems_of(oracle.told, database)
        problems += exported_problems(database, collector.results_file) + series_problems(database)
        problems += sink_problems(sink, {row[0] for row in database.execute("SELECT id FROM results")})
        if still_open := open_chunks(database):
            problems.append(f"{len(still_open)} chunks are in no decided trace")
        problems += differences(standing_results(collector), _as_file(database))
        (figures.traces,) = database.execute("SELECT count(*) FROM traces").fetchone()
        (figures.results,) = database.execute("SELECT count(*) FROM results").fetchone()
        (items,) = database.execute("SELECT sum(items) FROM chunks").fetchone()
        figures.resent = items - len(stored_spans(database))
    figures.problems.extend(problems)


def sink_problems(sink: Sink, results: set[str]) -> list[str]:
    """Check that the sink has exactly the results, with identical repeats."""
    found = []
    if missing := results - sink.results:
        found.append(f"{len(missing)} results never reached the sink")
    if unknown := sink.results - results:
        found.append(f"{len(unknown)} results at the sink are not in the store")
    if sink.changed:
        found.append(f"{len(sink.changed)} exports came again with other content")
    return found


def _as_file(database: sqlite3.Connection) -> Results:
    return uninterrupted(Request(False, chunk) for chunk in requests_by_trace(database))


def standing_results(collector: CollectorProcess) -> Results:
    """Return ID and score of each current result in the file."""
    return {key: (each["id"], each["score"]) for key, each in collector.standing().items()}


def uninterrupted(requests: Iterable[Request | BadLine]) -> Results:
    """Return the results of a file run over the same spans."""
    config = load(None, {})
    with TraceFiles(close_rules(config)) as run:
        for request in requests:
            run.add(request)
        results = [result.to_dict() for result in replay(run, evaluator(config))]
        assert not run.read.bad, run.read.problems
    return {key: (each["id"], each["score"]) for key, each in standing(results).items()}


def differences(found: Results, expected: Results) -> list[str]:
    wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
    if not wrong:
        return []
    first = min(wrong)
    return [
        f"{len(wrong)} of {len(expected)} results are not those of an uninterrupted run, such as "
        f"{first}: {found.get(first)} instead of {expected.get(first)}"
    ]
