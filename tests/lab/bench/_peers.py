"""Systems compared with the collector: installation, start and guarantees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from _server import Server, collector, free_ports, running

CACHE = Path.home() / ".cache" / "pandaeval"
_PEERS = CACHE / "peers"
_PROGRAMS = Path(__file__).parents[2] / "support" / "programs.py"
_OTELCOL = Path(os.environ.get("PANDAEVAL_OTELCOL") or CACHE / "otelcol" / "otelcol-pandaeval")
_INSTALL_S = 1_500
Start = Callable[[Path], AbstractContextManager[Server]]


@dataclass(frozen=True, slots=True)
class Package:
    """An installable system. ``program`` is built by ``steps``; ``command``: for readers."""

    command: str
    program: Path
    steps: tuple[tuple[str, ...], ...]
    version: tuple[str, ...]

    def install(self) -> str:
        """Install it; return a problem, or ``""``."""
        _PEERS.mkdir(parents=True, exist_ok=True)
        for step in () if self.program.exists() else self.steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"{type(error).__name__} of {step[0]}"
            if done.returncode:
                return next(iter(reversed(done.stderr.strip().splitlines())), f"exit {done.returncode}")
        return self.missing()

    def missing(self) -> str:
        return "" if self.program.exists() else "nobody installed it"

    def found_version(self) -> str:
        return subprocess.run(self.version, capture_output=True, text=True, check=True).stdout.split()[-1]


def _python_package(name: str, program: str, *options: str) -> Package:
    """Return a PyPI package with its own environment."""
    folder = _PEERS / name
    python = str(folder / "bin" / "python")
    return Package(
        " ".join(["pip install", *options, name]),
        folder / program,
        ((sys.executable, "-m", "venv", str(folder)), (python, "-m", "pip", "install", "-q", *options, name)),
        (python, "-c", f"from importlib.metadata import version; print(version('{name}'))"),
    )


_ROTEL = _python_package(
    "rotel", f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/rotel/rotel-agent", "--pre"
)
_AGENTEVALS = _python_package("agentevals-cli", "bin/agentevals")
_PHOENIX = _python_package("arize-phoenix", "bin/phoenix")
_OCB = Package(
    "python tests/support/programs.py otelcol",
    _OTELCOL,
    ((sys.executable, str(_PROGRAMS), "otelcol"),),
    (str(_OTELCOL), "--version"),
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A system under load. ``durable``: saved before the answer; ``assembled``, ``scored``: automatic processing."""

    name: str
    durable: str
    assembled: str
    scored: str
    start: Start
    package: Package | None = None


def peers() -> list[Peer]:
    """Return all systems, ours first."""
    return [
        Peer("this collector", "yes, fsync", "yes", "yes, all metrics without a judge", _own(_SCORED)),
        Peer("this collector, accepting only", "yes, fsync", "traces stay open", "no", _own(_OPEN)),
        Peer(
            "OpenTelemetry Collector, file_storage",
            "yes, fsync",
            "no",
            "no",
            lambda folder: _otelcol(folder, []),
            _OCB,
        ),
        Peer(
            "OpenTelemetry Collector, groupbytrace, file_storage",
            "no: traces wait in memory, then fsync",
            "yes, 1 s after the first span",
            "no",
            lambda folder: _otelcol(folder, ["groupbytrace"]),
            _OCB,
        ),
        Peer("Rotel, to nowhere", "no", "no", "no", _rotel, _ROTEL),
        Peer("agentevals serve", "no, in memory", "yes; keeps 100 sessions", "no: on demand", _agentevals, _AGENTEVALS),
        Peer(
            "Phoenix",
            "no: a queue in memory, then SQLite, synchronous=OFF",
            "when it is asked for a trace",
            "no: on demand",
            _phoenix,
            _PHOENIX,
        ),
    ]


_NOWHERE = {"EXPORTERS__OTLP__ENDPOINT": "127.0.0.1:9"}
"""A sink that is down: results stay in the outbox."""
_SCORED = {"CLOSE__QUIET": "0.2s", **_NOWHERE}
_OPEN = {"CLOSE__QUIET": "1h", "CLOSE__IDLE": "1h", "CLOSE__MAX_AGE": "2h"}


def _own(settings: Mapping[str, str]) -> Start:
    return lambda folder: collector(folder, settings)


@contextmanager
def _otelcol(folder: Path, processors: list[str]) -> Iterator[Server]:
    """Return an OpenTelemetry Collector with a disk queue."""
    [grpc] = (f"127.0.0.1:{port}" for port in free_ports(1))
    queue = {"enabled": True, "storage": "file_storage", "queue_size": 100_000, "block_on_overflow": True}
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": grpc, "max_recv_msg_size_mib": 64}}}},
        "extensions": {"file_storage": {"directory": str(folder / "queue"), "create_directory": True, "fsync": True}},
        "processors": {name: {} for name in processors},
        "exporters": {"debug": {"sending_queue": queue}},
        "service": {
            "extensions": ["file_storage"],
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": processors, "exporters": ["debug"]}},
            "telemetry": {"metrics": {"level": "none"}},
        },
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # YAML reads JSON
    yield from running(Server([str(_OTELCOL), "--config", str(folder / "config.yaml")], grpc, {}, folder))


@contextmanager
def _rotel(folder: Path) -> Iterator[Server]:
    grpc, http = (f"127.0.0.1:{port}" for port in free_ports(2))
    listen = ["--otlp-grpc-endpoint", grpc, "--otlp-http-endpoint", http]
    yield from running(Server([str(_ROTEL.program), "start", "--exporter", "blackhole", *listen], grpc, {}, folder))


@contextmanager
def _agentevals(folder: Path) -> Iterator[Server]:
    ports = dict(zip(("--port", "--otlp-http-port", "--otlp-grpc-port"), map(str, free_ports(3)), strict=True))
    options = ["--dev", "--headless", "--host", "127.0.0.1", "--api-grpc-port", "0"]
    command = [str(_AGENTEVALS.program), "serve", *options, *(each for pair in ports.items() for each in pair)]
    yield from running(Server(command, f"127.0.0.1:{ports['--otlp-grpc-port']}", {}, folder))


@contextmanager
def _phoenix(folder: Path) -> Iterator[Server]:
    http, grpc = map(str, free_ports(2))
    environ = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": http,
        "PHOENIX_GRPC_PORT": grpc,
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    yield from running(Server([str(_PHOENIX.program), "serve"], f"127.0.0.1:{grpc}", environ, folder))
