"""Run a Python module as a child process, with pipes of length-prefixed frames (8 bytes)."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from pandaeval_collector.base.errors import UserError

_ROOT = Path(__file__).resolve().parents[3]
_BUFFER_BYTES = 4 << 20
_START_S, _START_CPU_S, _START_CHECK_S = 120.0, 120.0, 1.0
_PR_SET_PDEATHSIG = 1
_PARENT = "--parent="
_LENGTH = struct.Struct("<Q")


class ChildStartError(UserError):
    """A process does not start."""


class Child:
    """A running child process. On one event loop."""

    def __init__(
        self, process: subprocess.Popen[bytes], out: asyncio.StreamReader, into: asyncio.WriteTransport
    ) -> None:
        self._process, self._into = process, into
        self.out = out
        """The process's standard output, which ends when the process does."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """CPU seconds used; 0 if unknown."""
        return sum(map(int, _stat(Path(f"/proc/{self.pid}/stat"))[11:13])) / os.sysconf("SC_CLK_TCK")

    def is_busy_below(self, cpu_s: float) -> bool:
        """Return whether a thread runs or waits for a core, and the process has used less than ``cpu_s`` CPU seconds.

        ``False`` if unknown.
        """
        states = (_stat(each)[:1] for each in Path(f"/proc/{self.pid}/task").glob("*/stat"))
        return [b"R"] in states and self.cpu_s < cpu_s

    def send(self, *parts: bytes) -> None:
        """Send a frame of ``parts``. No effect if the process is gone."""
        if not self._into.is_closing():
            self._into.writelines((_LENGTH.pack(sum(map(len, parts))), *parts))

    async def receive(self) -> bytes | None:
        """Return the body of the next frame; ``None`` at the end."""
        try:
            (length,) = _LENGTH.unpack(await self.out.readexactly(_LENGTH.size))
            return await self.out.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def end_input(self) -> None:
        """Close the process's standard input, which ends it."""
        if not self._into.is_closing():
            self._into.close()

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        """Wait for the exit code; negative if killed."""
        code = await asyncio.get_running_loop().run_in_executor(None, self._process.wait)
        self.end_input()
        return code


class Parent:
    """The process that started this one, by :func:`start_child`. Prints go to standard error."""

    def __init__(self, *, nice: int = 0) -> None:
        """``nice``: nice value, unless it is higher already. Ignores interrupts. The process ends with its parent."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _end_if_orphan()  # the parent may have ended before the line above
        # If memory runs out, the kernel kills this process first, because the collector can restart it.
        with contextlib.suppress(OSError):  # no Linux, or not allowed
            Path("/proc/self/oom_score_adj").write_text("500")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        os.nice(max(0, nice - os.nice(0)))
        self._in, self._out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def receive(self) -> bytes | None:
        """Return the body of the next frame; ``None`` at the end. Blocks."""
        head = self._in.read(_LENGTH.size)
        body = self._in.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else None
        return body if body is not None and len(body) == _LENGTH.unpack(head)[0] else None

    def send(self, *parts: bytes) -> None:
        self._out.writelines((_LENGTH.pack(sum(map(len, parts))), *parts))
        self._out.flush()

    def listen(self, take: Callable[[bytes], object]) -> None:
        """Call ``take`` with every frame, on a separate thread. The process exits when its input ends."""

        def read() -> None:
            while (body := self.receive()) is not None:
                take(body)
            os._exit(0)

        threading.Thread(target=read, name="stdin", daemon=True).start()


async def start_child(module: str, environ: Mapping[str, str], silent: bool = False) -> Child:
    """Run ``module`` with ``python -m``. ``silent``: discards its standard error. Raises ``OSError``."""
    loop = asyncio.get_running_loop()
    process = await loop.run_in_executor(None, _popen, module, environ, silent)
    out = asyncio.StreamReader(limit=_BUFFER_BYTES)
    await loop.connect_read_pipe(lambda: _UpToItsEnd(out), _closed_once(process.stdout, loop))
    into, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, _closed_once(process.stdin, loop))
    return Child(process, out, into)


async def start_with(
    setup: bytes, module: str, environ: Mapping[str, str], silent: bool = False
) -> tuple[Child, bytes]:
    """Start a child, send ``setup``, and return it with its first frame.

    Raises :class:`ChildStartError`, also if no frame comes within two minutes. If the process waits for a core, it has
    longer, until it has used two minutes of CPU time.
    """
    try:
        child = await start_child(module, environ, silent)
    except OSError as error:
        raise ChildStartError(f"cannot be started: {error}") from error
    child.send(setup)
    try:
        answer = await _first_frame(child)
    except TimeoutError as error:
        used = child.cpu_s
        child.kill()
        await child.wait()
        raise ChildStartError(f"does not start: it sent no message, and used {used:.0f} s of CPU time") from error
    except asyncio.CancelledError:  # the collector stops meanwhile
        child.kill()
        raise
    if answer is None:
        raise ChildStartError(f"does not start: it ended at once with {await child.wait()}")
    return child, answer


async def _first_frame(child: Child) -> bytes | None:
    """Return the first frame; ``None`` at the end. Raises ``TimeoutError``."""
    frame = asyncio.ensure_future(child.receive())
    try:
        await asyncio.wait({frame}, timeout=_START_S)
        while not frame.done():
            if not child.is_busy_below(_START_CPU_S):
                raise TimeoutError
            await asyncio.wait({frame}, timeout=_START_CHECK_S)
        return frame.result()
    finally:
        frame.cancel()


def _end_if_orphan() -> None:
    for argument in [each for each in sys.argv if each.startswith(_PARENT)]:
        if argument != f"{_PARENT}{os.getppid()}":
            os._exit(1)
        sys.argv.remove(argument)  # users' programs that run in this process parse their arguments


def _stat(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


class _UpToItsEnd(asyncio.StreamReaderProtocol):
    def eof_received(self) -> bool:
        """Close the pipe at its end. uvloop would wait for garbage collection."""
        super().eof_received()
        return False


class _Lent:
    """A pipe whose descriptor uvloop closes. A second close could hit a reused descriptor."""

    def __init__(self, pipe: IO[bytes]) -> None:
        with pipe:
            self._descriptor = os.dup(pipe.fileno())

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        """No effect: uvloop has closed the descriptor."""


def _closed_once(pipe: IO[bytes] | None, loop: asyncio.AbstractEventLoop) -> Any:
    assert pipe is not None
    return pipe if isinstance(loop, asyncio.BaseEventLoop) else _Lent(pipe)


def _popen(module: str, environ: Mapping[str, str], silent: bool) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(_ROOT), environ.get("PYTHONPATH")]))
    return subprocess.Popen(  # noqa: S603 - our own program
        # -P: a file in the working directory must not pass for a package
        [sys.executable, "-P", "-m", module, f"{_PARENT}{os.getpid()}"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL if silent else None,
        env={**environ, "PYTHONPATH": path},
        start_new_session=True,  # an interrupt at the terminal is the collector's to handle
    )
