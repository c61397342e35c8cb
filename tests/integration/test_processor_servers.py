"""The span processor in gunicorn and uvicorn workers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.agents import scored
from support.collector import CollectorProcess
from support.ports import free_ports
from support.processors import until

pytest.importorskip("gunicorn", reason="needs gunicorn (the dev extra has it)")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs fork")

CLIENTS, WORKERS = 4, 2
GEVENT = ("gunicorn", "support.web:wsgi", "--worker-class", "gevent")
SERVERS = {
    "gunicorn": ("gunicorn", "support.web:wsgi", "--workers", str(WORKERS), "--bind"),
    "gunicorn, preloaded": ("gunicorn", "support.web:wsgi", "--preload", "--workers", str(WORKERS), "--bind"),
    "gunicorn, gevent": (*GEVENT, "--workers", str(WORKERS), "--bind"),
    "gunicorn, gevent, preloaded": (*GEVENT, "--preload", "--workers", str(WORKERS), "--bind"),
    "uvicorn": ("uvicorn", "support.web:asgi", "--workers", str(WORKERS), "--port"),
}
EVER = ("gunicorn, gevent, preloaded",)
"""The fast variant has both forks and greenlets."""


class Server:
    """A web server. ``books``: counts of ended processes."""

    def __init__(self, folder: Path, command: Sequence[str], endpoint: str, **variables: str) -> None:
        self.port = free_ports(1)[0]
        self.books_folder, self.log_file = folder / "books", folder / "server.log"
        self.books_folder.mkdir()
        where = f"127.0.0.1:{self.port}" if command[-1] == "--bind" else str(self.port)
        outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
        ours = {
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "PANDAEVAL_ENDPOINT": endpoint,
            "PANDAEVAL_SHUTDOWN_TIMEOUT": "20",
            "BOOKS": str(self.books_folder),
        }
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command, where],
                env=outside | ours | variables,
                stdout=log,
                stderr=log,
                cwd=folder,
            )

    def get(self, path: str = "") -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as response:
            found: dict[str, Any] = json.load(response)
            return found

    def up(self) -> bool:
        assert self.process.poll() is None, self.log()
        with contextlib.suppress(OSError):
            return bool(self.get())
        return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def books(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.books_folder.iterdir()]

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-6000:]


@contextlib.contextmanager
def clients(server: Server) -> Iterator[list[dict[str, Any]]]:
    """Send requests inside the block; return answers."""
    answers: list[dict[str, Any]] = []
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            # A worker that stops may close connections before or during an answer.
            with contextlib.suppress(OSError, http.client.HTTPException):
                answers.append(server.get())

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def _installed(command: Sequence[str]) -> None:
    if "gevent" in command:
        pytest.importorskip("gevent", reason="needs gevent (the dev extra has it)")
        pytest.importorskip("packaging", reason="needs packaging (the dev extra has it)")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name, marks=[] if name in EVER else pytest.mark.slow)
        for name, command in SERVERS.items()
    ],
)
def test_every_trace_of_every_server_worker_is_scored(command: Sequence[str], tmp_path: Path) -> None:
    """Under load, through a reload (SIGHUP) and a stop (SIGTERM)."""
    _installed(command)
    with CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        server = Server(tmp_path, command, collector.grpc)
        try:
            until(server.up, "the server's start", 60)
            with clients(server) as answers:
                until(lambda: len({each["pid"] for each in answers}) == WORKERS, "a request to each worker", 60)
                server.process.send_signal(signal.SIGHUP)
                until(lambda: len({each["pid"] for each in answers}) >= 2 * WORKERS, "a request to each new worker", 60)
                seen = len(answers)
                until(lambda: len(answers) > seen + 20, "some more", 60)
            code = server.stop()
        finally:
            server.process.kill()
            server.process.wait()
        log = server.log()
        assert code == 0, log
        assert "TIMEOUT" not in log
        assert "SIGKILL" not in log
        assert "Traceback" not in log
        books = server.books()
        assert len(books) >= len({each["pid"] for each in answers})
        made = {trace for each in books for trace in each["traces"]}
        assert {each["trace"] for each in answers} <= made
        assert [each["balance"] for each in books] == [0] * len(books)
        assert sum(each["acknowledged"] for each in books) == len(made)
        assert sum(each["dropped"] + each["rejected"] for each in books) == 0
        collector.until(lambda: made <= scored(collector.results()), "done with all of them")
        assert scored(collector.results()) == made


@pytest.mark.slow
def test_greenlets_have_separate_sessions_and_do_not_block_on_a_paused_collector(tmp_path: Path) -> None:
    command = (*GEVENT, "--workers", "1", "--bind")
    _installed(command)
    with CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        server = Server(tmp_path, command, collector.grpc, PANDAEVAL_TIMEOUT="120")
        try:
            until(server.up, "the server's start", 60)
            with ThreadPoolExecutor(CLIENTS) as pool:
                names = [f"session-{number}" for number in range(40)]
                answers = [*pool.map(server.get, names[:20])]
                os.kill(collector.process.pid, signal.SIGSTOP)  # type: ignore[union-attr]
                answers += pool.map(server.get, names[20:])
                time.sleep(0.5)  # the worker has sent their traces and waits for the collector
                answers += pool.map(server.get, names)
                os.kill(collector.process.pid, signal.SIGCONT)  # type: ignore[union-attr]
            code = server.stop()
        finally:
            server.process.kill()
            server.process.wait()
        assert code == 0, server.log()
        assert [each["balance"] for each in server.books()] == [0]
        sessions = {answer["trace"]: name for answer, name in zip(answers, names + names, strict=True)}
        collector.until(lambda: {*sessions} <= scored(collector.results()), "done with all of them")
        found = {each["trace_id"]: each["session_id"] for each in collector.results() if each["level"] == "trace"}
        assert {trace: found[trace] for trace in sessions} == sessions


@pytest.mark.slow
def test_a_killed_server_worker_does_not_affect_other_workers(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        server = Server(tmp_path, SERVERS["gunicorn, preloaded"], collector.grpc)
        try:
            until(server.up, "the server's start", 60)
            with clients(server) as answers:
                until(lambda: len({each["pid"] for each in answers}) == WORKERS, "a request to each worker", 60)
                killed = answers[0]["pid"]
                os.kill(killed, signal.SIGKILL)
                until(lambda: len({each["pid"] for each in answers}) > WORKERS, "a request to a new worker", 60)
                time.sleep(0.2)
            assert server.stop() == 0
        finally:
            server.process.kill()
            server.process.wait()
        books = server.books()
        assert [each["balance"] for each in books] == [0] * len(books)
        others = {each["trace"] for each in answers if each["pid"] != killed}
        assert others <= {trace for each in books for trace in each["traces"]}
        collector.until(lambda: others <= scored(collector.results()), "done with all of them")
