"""A collector as its own process on free loopback ports."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import environ, pathsep
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson
from prometheus_client.parser import text_string_to_metric_families

from support import forked
from support.ports import free_ports

START_S, STOP_S, DONE_S = 120.0, 120.0, 120.0
"""Deadlines for slow machines."""

# On Linux the child ends with its parent, also after SIGKILL. The parent is the thread that started the child.
_MAIN = """
import ctypes, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
from pandaeval_collector.cli import main
main()
"""
# Short waits, so that tests take seconds instead of minutes.
BRISK = {
    "PANDAEVAL_CLOSE__QUIET": "300ms",
    "PANDAEVAL_CLOSE__IDLE": "1s",
    "PANDAEVAL_SESSION__IDLE": "1s",
}


class DiedError(AssertionError):
    """The collector ended unexpectedly; the message ends with its log."""


class CollectorProcess:
    """One data directory and three ports, for one process at a time, as a context manager.

    ``settings``: environment variables. ``fresh``: new interpreter instead of a fork (:mod:`support.forked`).
    ``own_children``: no forked children. Start it on the main thread.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        name: str = "collector",
        arguments: Sequence[str] = (),
        fresh: bool | None = None,
        own_children: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.data = folder, folder / "data"
        self.results_file, self.log_file = folder / "results.jsonl", folder / f"{name}.log"
        self.grpc_port, self.http_port, self.health_port = free_ports(3)
        self.settings = {
            "PANDAEVAL_SERVER__GRPC": self.grpc,
            "PANDAEVAL_SERVER__HTTP": f"127.0.0.1:{self.http_port}",
            "PANDAEVAL_SERVER__HEALTH": f"127.0.0.1:{self.health_port}",
            "PANDAEVAL_DATA": str(self.data),
            "PANDAEVAL_EXPORTERS__JSONL__PATH": str(self.results_file),
            **BRISK,
            **(settings or {}),
        }
        self.arguments = ("collector", *arguments)
        self.fresh = "PYTHONPATH" in self.settings or (fresh if fresh is not None else not forked.is_wanted())
        self.own_children = own_children
        self.process: subprocess.Popen[bytes] | forked.Forked | None = None

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def __enter__(self) -> CollectorProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # -- life ----------------------------------------------------------------------------------------------------

    def launch(self, **variables: str) -> None:
        """Start the process without waiting. ``variables``: extra environment."""
        assert self.process is None or self.process.poll() is not None, "the collector is already running"
        outside = {key: value for key, value in environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
        path = pathsep.join(entry for entry in sys.path if entry)
        environment = outside | {"PYTHONPATH": path} | self.settings | variables
        with self.log_file.open("ab") as log:
            start = self._start_fresh if self.fresh else self._fork
            self.process = start(environment, log)
        _alive.add(self.process)

    def _fork(self, environment: Mapping[str, str], log: IO[bytes]) -> forked.Forked:
        return forked.start(self.arguments, environment, log, self.own_children)

    def _start_fresh(self, environment: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _MAIN, *self.arguments]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, **variables: str) -> CollectorProcess:
        """Start it and wait until ready. Raises :class:`DiedError`."""
        self.launch(**variables)
        self.until(self.ready, "ready", START_S)
        return self

    def ready(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._get("/readyz").status == 200)
        return False

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def until(self, condition: Callable[[], bool], what: str, timeout: float = DONE_S) -> None:
        """Wait for the condition; raise :class:`DiedError` if the process ends."""
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.running():
                raise DiedError(f"the collector ended with {self.exit_code()} before it was {what}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"not {what} after {timeout} s:\n{self.log()}")
            time.sleep(0.02)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self.process is not None, "it was never started"
        self.process.send_signal(signal.SIGTERM)
        return self.wait(STOP_S)

    def kill(self) -> None:
        if self.process is not None:
            _end(self.process)

    def wait(self, timeout: float) -> int:
        """Return the exit code; -9 after SIGKILL. Raises ``subprocess.TimeoutExpired``."""
        assert self.process is not None, "it was never started"
        return self.process.wait(timeout)

    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    # -- its output ----------------------------------------------------------------------------------------------

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-6000:]

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Return its counters by name, outcome and reason."""
        found: Counter[tuple[str, str, str]] = Counter()
        for family in text_string_to_metric_families(self._get("/metrics").read().decode()):
            for sample in family.samples:
                if "pandaeval_outcome" in sample.labels:
                    outcome, reason = sample.labels["pandaeval_outcome"], sample.labels.get("pandaeval_reason", "")
                    name = sample.name.removeprefix("pandaeval_").removesuffix("_total")
                    found[name, outcome, reason] += int(sample.value)
        return found

    def gauge(self, name: str) -> float:
        families = text_string_to_metric_families(self._get("/metrics").read().decode())
        samples = (sample for family in families for sample in family.samples)
        return next(float(sample.value) for sample in samples if sample.name == f"pandaeval_{name}")

    def series(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and values of a metric, named without prefix."""
        families = text_string_to_metric_families(self._get("/metrics").read().decode())
        samples = (sample for family in families for sample in family.samples)
        return [(sample.labels, sample.value) for sample in samples if sample.name == f"pandaeval_{name}"]

    def results(self) -> list[dict[str, Any]]:
        """Return the whole lines of the JSON lines file."""
        if not self.results_file.exists():
            return []
        text = self.results_file.read_bytes()
        return [orjson.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    def standing(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the current result per (trace or session ID, level.metric)."""
        return standing(self.results())

    def at_rest(self) -> bool:
        """Return whether every trace is decided, session scored and result delivered."""
        if not (self.data / "pandaeval.db").exists():
            return False
        with self.database() as database:
            database.execute("BEGIN")  # a snapshot: a session that opens between two queries would be missed
            (open_sessions,) = database.execute("SELECT count(*) FROM sessions WHERE open").fetchone()
            (unsent,) = database.execute("SELECT count(*) FROM outbox").fetchone()
            (unwritten,) = database.execute(
                """SELECT count(*) FROM results WHERE seq >
                   coalesce((SELECT json_extract(value, '$.seq') FROM meta WHERE key = 'cursor:jsonl'), 0)"""
            ).fetchone()
            return not open_sessions + unsent + unwritten and not open_chunks(database)

    def jobs(self) -> int:
        """Return the number of questions that wait for the judge."""
        with self.database() as database:
            return int(database.execute("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')").fetchone()[0])

    @contextlib.contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the store of a running collector read-only; see :func:`snapshot` for a dead collector."""
        with contextlib.closing(sqlite3.connect(f"file:{self.data / 'pandaeval.db'}?mode=ro", uri=True)) as connection:
            yield connection

    def _get(self, path: str) -> Any:
        return urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}{path}", timeout=60)


def children_of(collector: CollectorProcess, what: bytes) -> list[int]:
    """Return the collector's child processes whose command line contains a text."""
    assert collector.process is not None
    found = []
    with contextlib.suppress(OSError):  # a process that has just ended
        for task in Path(f"/proc/{collector.process.pid}/task").iterdir():
            children = (task / "children").read_text().split()
            found += [int(child) for child in children if what in Path(f"/proc/{child}/cmdline").read_bytes()]
    return found


def standing(results: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the newest result per unit and metric, without retractions."""
    newest = {(unit_of(each), f"{each['level']}.{each['metric']}"): each for each in results}
    return {key: each for key, each in newest.items() if not each["metadata"].get("taken_back")}


def unit_of(result: Mapping[str, Any]) -> str:
    """Return the ID of the result's trace, session or turn."""
    if result["level"] == "turn":
        return f"{result['trace_id']}:{result['span_id']}"
    return str(result["session_id"] if result["level"] == "session" else result["trace_id"])


def open_chunks(database: sqlite3.Connection) -> list[tuple[bytes, int]]:
    """Return (trace ID, chunk ID) of undecided chunks."""
    covered = {
        (trace_id, chunk)
        for trace_id, chunks in database.execute("SELECT trace_id, chunks FROM traces")
        for chunk in orjson.loads(chunks)
    }
    return [row for row in database.execute("SELECT trace_id, id FROM chunks ORDER BY id") if row not in covered]


@contextlib.contextmanager
def snapshot(data: Path, scratch: Path) -> Iterator[sqlite3.Connection]:
    """Copy a dead collector's store, because opening the original would recover its log."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for suffix in ("", "-wal"):
        if (data / f"pandaeval.db{suffix}").exists():
            shutil.copyfile(data / f"pandaeval.db{suffix}", copy / f"pandaeval.db{suffix}")
    with contextlib.closing(sqlite3.connect(copy / "pandaeval.db")) as connection:
        yield connection
    shutil.rmtree(copy)


def _end(process: subprocess.Popen[bytes] | forked.Forked) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    _alive.discard(process)


@atexit.register
def _end_all() -> None:
    for process in list(_alive):
        _end(process)


_alive: set[subprocess.Popen[bytes] | forked.Forked] = set()
