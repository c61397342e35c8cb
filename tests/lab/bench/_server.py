"""Servers under load as one-core processes, with resource usage."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

SERVER_CORE, LOAD_CORE = 0, 1
_TICKS = os.sysconf("SC_CLK_TCK")
BYTECODE = {"PYTHONPYCACHEPREFIX": str(Path.home() / ".cache/pandaeval/bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
"""Environment that reuses compiled bytecode, as installed packages do."""
_START_S, _STOP_S = 180.0, 30.0


class Server:
    """A process and its OTLP/gRPC address. ``core``: ``None`` for all."""

    def __init__(
        self,
        command: list[str],
        address: str,
        environ: Mapping[str, str],
        folder: Path,
        ready_at: str | None = None,
        core: int | None = SERVER_CORE,
    ) -> None:
        self.address, self.folder, self._ready_at = address, folder, ready_at
        self.started_at = time.monotonic()
        with (folder / "log").open("ab") as log, pinned(core):
            self.process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=log, stderr=log)

    def wait_ready(self, pause_s: float = 0.01) -> float:
        """Return the seconds until it accepts requests."""
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > self.started_at + _START_S:
                raise RuntimeError(f"{self.process.args!r} did not start:\n{(self.folder / 'log').read_text()}")
            time.sleep(pause_s)
        return time.monotonic() - self.started_at

    def cpu_s(self) -> float:
        """Return CPU seconds of server and children."""
        return self.own_cpu_s() + sum(_cpu_s(child) for child in self.children())

    def own_cpu_s(self) -> float:
        """Return CPU seconds of the process itself."""
        return _cpu_s(self.process.pid)

    def wanted_s(self) -> float:
        """Return CPU and core waiting time of live threads."""
        tasks = (task for pid in (self.process.pid, *self.children()) for task in Path(f"/proc/{pid}/task").iterdir())
        return sum(_ran_and_waited_s(task) for task in tasks)

    def children(self) -> list[int]:
        """Return the running descendant processes."""
        return _below(self.process.pid)

    def memory(self, field: str = "VmRSS", pid: int | None = None) -> int:
        """Return memory in bytes; ``VmHWM`` is the peak. ``pid``: of a child."""
        for line in Path(f"/proc/{pid or self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
        raise KeyError(field)

    def counters(self) -> dict[str, float]:
        """Return ``/metrics`` by name and labels."""
        found = {}
        for line in self.get("/metrics").splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    def decided(self) -> int:
        return int(sum(n for name, n in self.counters().items() if name.startswith("pandaeval_traces_total")))

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._ready_at}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            if self._ready_at is not None:
                self.get("/readyz")
            else:
                host, _, port = self.address.rpartition(":")
                socket.create_connection((host, int(port)), 1.0).close()
            return True
        return False


@contextlib.contextmanager
def collector(folder: Path, settings: Mapping[str, str], core: int | None = SERVER_CORE) -> Iterator[Server]:
    """Return a collector in ``folder``. ``settings``: such as ``{"CLOSE__QUIET": "1s"}``."""
    grpc, http, health = (f"127.0.0.1:{port}" for port in free_ports(3))
    own = {"SERVER__GRPC": grpc, "SERVER__HTTP": http, "SERVER__HEALTH": health, "DATA": str(folder / "data")}
    environ = BYTECODE | {f"PANDAEVAL_{key}": value for key, value in {**own, **settings}.items()}
    environ["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", "from pandaeval_collector.cli import main; main()", "collector"]
    yield from running(Server(command, grpc, environ, folder, health, core))


def running(server: Server) -> Iterator[Server]:
    """Run the server inside the block."""
    try:
        yield server
    finally:
        server.stop()


def _below(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [found for child in children for found in (child, *_below(child))]


def _ran_and_waited_s(task: Path) -> float:
    try:
        ran, waited, _ = map(int, (task / "schedstat").read_text().split())
    except OSError:  # the process has just ended
        return 0.0
    return (ran + waited) / 1e9


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


@contextlib.contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Start processes on this core only."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_ports(number: int) -> list[int]:
    found: list[int] = []
    while len(found) < number:
        port = random.randrange(15_000, 32_000)
        with contextlib.closing(socket.socket()) as attempt, contextlib.suppress(OSError):
            attempt.bind(("127.0.0.1", port))
            found.append(port)
    return found
