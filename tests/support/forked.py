"""Starts our processes by forking after imports, for a tenth of the work.

One helper serves collector, workers and runs; another serves judges. Start-up tests use ``fresh`` instead.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from pandaeval_collector.base.runtime import child

COMMAND = "pandaeval"
_HELPER_OF = {
    COMMAND: "collector",
    "pandaeval_collector.pipeline.line.main": "collector",
    "pandaeval_collector.app.judge_main": "collector",
    "pandaeval_lab.replay.run_process": "collector",
    "pandaeval_collector.app.reader_main": "collector",
    "pandaeval_collector.judge.worker": "judge",
}
_SHARED = "TESTS_FORKED_FROM"
"""The variable with the folder of shared helpers."""
_SERVE = "from support.forking_helper import serve; serve()"


class Forked:
    """A forked process with the used part of ``subprocess.Popen``. Thread-safe."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._said = connection.detach()
        self._lock = threading.Lock()
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None

    def __del__(self) -> None:
        os.close(self._said)
        for pipe in filter(None, (self.stdin, self.stdout)):
            pipe.close()

    def poll(self) -> int | None:
        """Return the exit code, negative after a signal; ``None`` while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises ``subprocess.TimeoutExpired``."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and the helper has not reported it yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and _readable(self._said, timeout):
            with self._lock:
                if self.returncode is None:
                    # Without an answer the helper has ended, and the process with it.
                    self.returncode = int(os.read(self._said, 100) or -signal.SIGKILL)
        return self.returncode


def is_wanted() -> bool:
    """Return whether this is a test run that can fork."""
    return "pytest" in sys.modules and sys.platform == "linux"


def install() -> None:
    """Fork the judge and worker processes of this process too."""
    child._popen = popen  # type: ignore[assignment]


def start(arguments: Sequence[str], environ: Mapping[str, str], log: IO[bytes], own_children: bool) -> Forked:
    """Start ``pandaeval`` with these arguments and log to ``log``. ``own_children``: as in production."""
    with open(os.devnull, "rb") as nothing:
        files = nothing.fileno(), log.fileno(), log.fileno()
        return _forked(COMMAND, arguments, environ, files, own_children)


def run(arguments: Sequence[str], environ: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run ``pandaeval`` and return its output. Raises ``subprocess.TimeoutExpired``."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "rb") as nothing:
        files = nothing.fileno(), out.fileno(), err.fileno()
        process = _forked(COMMAND, arguments, environ, files, own_children=False)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([COMMAND, *arguments], code, out.read().decode(), err.read().decode())


def popen(module: str, environ: Mapping[str, str], silent: bool) -> subprocess.Popen[bytes] | Forked:
    """Replaces the function that starts ``python -m module``."""
    elsewhere = {*filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))} - {*sys.path}
    if module not in _HELPER_OF or elsewhere:  # other paths may have other modules
        return _POPEN(module, environ, silent)
    (read_by_it, into), (out, written_by_it) = os.pipe(), os.pipe()
    with open(os.devnull, "wb") as nothing:
        files = read_by_it, written_by_it, nothing.fileno() if silent else 2
        process = _forked(module, (), environ, files, own_children=True)
    os.close(read_by_it)
    os.close(written_by_it)
    process.stdin, process.stdout = os.fdopen(into, "wb", 0), os.fdopen(out, "rb", 0)
    return process


_POPEN = child._popen


def _forked(
    main: str, arguments: Sequence[str], environ: Mapping[str, str], files: Sequence[int], own_children: bool
) -> Forked:
    request = {"main": main, "arguments": [*arguments], "environ": dict(environ), "own_children": own_children}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(helpers() / _HELPER_OF[main]))
    socket.send_fds(connection, [json.dumps(request).encode()], files)
    answer = connection.recv(100)
    assert answer, f"the helper that {main} is forked from has ended"
    return Forked(connection, int(answer))


def helpers() -> Path:
    if _folders.get("", ("", 0))[1] != os.getpid():
        use(Path(os.environ[_SHARED]) if _SHARED in os.environ else _started(), os.getpid())
    return Path(_folders[""][0])


def share() -> None:
    """Share these helpers with test processes that this process starts."""
    os.environ[_SHARED] = str(helpers())


def use(folder: Path, pid: int) -> None:
    _folders[""] = (str(folder), pid)


_folders: dict[str, tuple[str, int]] = {}


def _started() -> Path:
    """Return the socket of a helper; start the judges' helper on demand."""
    folder = Path(tempfile.mkdtemp())
    listening = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    for name, listener in zip(("collector", "judge"), listening, strict=True):
        listener.bind(str(folder / name))
        listener.listen(100)
    process = helper("collector", folder, [listener.fileno() for listener in listening])
    for listener in listening:
        listener.close()

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


def helper(kind: str, folder: Path, listening: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a helper, which ends when its standard input closes."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _SERVE, kind, str(folder), *map(str, listening)],
        env=os.environ | {"PYTHONPATH": path, "GRPC_ENABLE_FORK_SUPPORT": "0"},
        stdin=subprocess.PIPE,
        pass_fds=listening,
    )


def _readable(descriptor: int, timeout: float | None) -> bool:
    return bool(select.select([descriptor], [], [], timeout)[0])


def goes_with_its_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
