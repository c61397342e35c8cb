"""A worker process of the line: ``python -m pandaeval_collector.pipeline.workers.main``.

It reads the store and writes nothing, so it may be killed at any time. Frames come in on standard input and leave on
standard output, see :mod:`pandaeval_collector.pipeline.workers.wire`: the first in is the setup, the first out an empty
one when it is ready or else says why it is not; then one batch of traces in, one answer out. When standard input ends,
it ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from pandaeval_collector.analysis.embedding.load import load
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.pipeline.line.understanding import Understanding
from pandaeval_collector.pipeline.workers import wire
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import ChunkReader
from pandaeval_otel.base.component_errors import ERRORS


class Frames:
    """Standard input and output as frames. Whatever is printed goes to standard error."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def read(self) -> bytes | None:
        """Reads the next frame; ``None`` at the end of the input."""
        head = _read(self._in, wire.LENGTH.size)
        return None if head is None else _read(self._in, wire.LENGTH.unpack(head)[0])

    def write(self, parts: Iterable[bytes]) -> None:
        parts = list(parts)
        self._out.write(wire.LENGTH.pack(sum(map(len, parts))))
        for part in parts:
            self._out.write(part)
        self._out.flush()


def _read(stream: BinaryIO, size: int) -> bytes | None:
    read = stream.read(size)
    return read if len(read) == size else None


def main() -> None:
    """Serve until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to all processes of a service at once: the collector decides
    _go_first()
    frames = Frames()
    first = frames.read()
    if first is None:
        return
    try:
        understanding = _open(wire.unpack_setup(first))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no worker
        frames.write([f"{type(error).__name__}: {error}"[:500].encode(errors="replace")])
        return
    frames.write([])
    for request in _requests(frames):
        try:
            understood = understanding.of(wire.unpack_due(request))
            answer = wire.pack_understood(understood, ERRORS.take())
            failpoints.reach("in_worker")
        except Exception as error:  # noqa: BLE001 - the parent decides what becomes of a trace that cannot be read
            answer = wire.pack_error(error, ERRORS.take())
        frames.write(answer)


def _go_first() -> None:
    """Where memory runs out, this process may be started again; the collector would have to begin anew."""
    with contextlib.suppress(OSError):  # no Linux, or not allowed
        Path("/proc/self/oom_score_adj").write_text("500")


def _open(setup: wire.WorkerSetup) -> Understanding:
    set_up(setup.log_level)
    ERRORS.hand_over()
    understanding = Understanding(ChunkReader(setup.store), Evaluator(load(setup.embedding), setup.settings))
    spare_the_garbage_collector()
    return understanding


def _requests(frames: Frames) -> Iterable[bytes]:
    """Read ahead on a thread, which also sees to it that nobody works for a parent that is gone."""
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while (request := frames.read()) is not None:
            inbox.put(request)
        os._exit(0)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    return iter(inbox.get, None)


if __name__ == "__main__":
    main()
