"""Processes of the command that begin where its imports have been made: a tenth of the work of a start.

A helper process imports what a collector imports, once; each :func:`start` is a fork of it, which then is a process of
its own with its own arguments, environment, files, signals and end. Tests that are about the start itself, and whatever
measures, take a fresh interpreter instead (``fresh=True`` of :class:`support.collector.CollectorProcess`).
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO

_PACKAGES = ("pandaeval_collector.metrics", "pandaeval_collector.embedding", "pandaeval_otel.dialects")
_MODULES = (
    *("pandaeval_collector.app", "pandaeval_collector.cli._app", "pandaeval_collector.cli._release"),
    *("pandaeval_collector.cli._start_checks", "pandaeval_collector.runtime.garbage", "uvicorn.lifespan.off"),
    *("pandaeval_collector.runtime.logs", "typer._click.decorators", "encodings.idna", "uvloop"),
)
_REQUEST_BYTES = 1 << 20


class Forked:
    """A process that was forked; what tests use of ``subprocess.Popen``."""

    def __init__(self, helper: _Helper, pid: int) -> None:
        self._helper, self.pid = helper, pid
        self._descriptor: int | None = os.pidfd_open(pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative after a signal; ``None`` while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises ``subprocess.TimeoutExpired``."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing happens when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self._descriptor is not None and select.select([self._descriptor], [], [], timeout)[0]:
            os.close(self._descriptor)
            self._descriptor = None
            self.returncode = self._helper.ask({"end_of": self.pid})
        return self.returncode


def start(arguments: Sequence[str], environ: Mapping[str, str], log: IO[bytes]) -> Forked:
    """``pandaeval`` with these arguments. ``log`` takes what it prints; it reads nothing."""
    helper = _helper()
    request = {"arguments": [*arguments], "environ": dict(environ)}
    return Forked(helper, helper.ask(request, [log.fileno()]))


def is_wanted() -> bool:
    """Whether these are tests, and not something that measures or proves, on a system that can do it."""
    return "pytest" in sys.modules and sys.platform == "linux"


class _Helper:
    """The process that is forked. It ends with ours."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from support.forked import serve; serve()", str(theirs.fileno())],
                env=os.environ | {"PYTHONPATH": path, "GRPC_ENABLE_FORK_SUPPORT": "0"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def ask(self, request: dict[str, object], files: Sequence[int] = ()) -> int:
        """The one number that answers. Raises ``AssertionError`` when the helper is gone."""
        with self._turn:
            socket.send_fds(self._ours, [json.dumps(request).encode()], files)
            answer = self._ours.recv(100)
        assert answer, "the helper that collectors are forked from has ended"
        return int(answer)

    def _end(self) -> None:
        self._ours.close()
        self._process.kill()
        self._process.wait()


_helpers: dict[int, _Helper] = {}


def _helper() -> _Helper:
    """Of this process: tests may be forked themselves."""
    if os.getpid() not in _helpers:
        _helpers[os.getpid()] = _Helper()
    return _helpers[os.getpid()]


def serve() -> None:
    """The helper: answers requests until nobody is left to ask. Returns in each process that it forks with its end."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    while True:
        request, files, *_ = socket.recv_fds(requests, _REQUEST_BYTES, 1)
        if not request:
            return
        asked = json.loads(request)
        if "end_of" in asked:
            _, status = os.waitpid(asked["end_of"], 0)
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            requests.close()
            return _become(asked["arguments"], asked["environ"], files[0])
        os.close(files[0])
        requests.send(str(pid).encode())


def _import_all() -> None:
    modules = [*_MODULES]
    for package in _PACKAGES:
        root = importlib.import_module(package)
        modules += [each.name for each in pkgutil.walk_packages(root.__path__, f"{package}.")]
    for module in modules:
        importlib.import_module(module)


def _become(arguments: Sequence[str], environ: Mapping[str, str], log: int) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # goes when the helper goes, which goes with its parent
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["pandaeval", *arguments]
    from pandaeval_collector.cli import main
    from pandaeval_collector.runtime import failpoints

    failpoints.arm(os.environ)  # read when it is imported
    main()
