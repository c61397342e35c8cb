"""A scoring worker: ``python -m pandaeval_collector.pipeline.line.main``.

It makes all decisions and writes nothing, so it may be killed at any time.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.base.runtime.peer import Handlers
from pandaeval_collector.base.runtime.serving import Tell, serve
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line.handover import unpacked
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import Understood
from pandaeval_otel.assembly import DueTrace

MOST_HELD = 8
"""Maximum batches held between understanding and filing. More batches mean that the main process has forgotten some."""


class OpensLine(Protocol):
    """A setup that creates the line in its process. ``telemetry`` is reported to the main process."""

    def open(self, telemetry: Telemetry) -> Line: ...


class LineServer:
    """Serves the main process. Single-threaded."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._numbers = itertools.count(1)
        self._held: dict[int, Sequence[Understood]] = {}

    def understand(self, due: Sequence[DueTrace]) -> bytes:
        understood = self._understood(due)
        return pickle.dumps([trace.without_spans() for trace in understood], pickle.HIGHEST_PROTOCOL)

    def keep_understood(self, due: Sequence[DueTrace]) -> int:
        """Keep outcomes; return their number for :meth:`file`."""
        number = next(self._numbers)
        self._held[number] = self._understood(due)
        while len(self._held) > MOST_HELD:
            del self._held[min(self._held)]
        return number

    def file(self, due: Sequence[DueTrace], held: int | bytes) -> Decision:
        """File traces under their sessions. Repeatable until answered."""
        understood: Sequence[Understood]
        understood = self._held[held] if isinstance(held, int) else pickle.loads(held)  # noqa: S301 - from our process
        decision = self._line.file(due, understood)
        if isinstance(held, int):
            del self._held[held]
        return decision

    def adopt(self, messages: Sequence[tuple[bytes, bool]]) -> Decision:
        return self._line.adopt([unpacked(body, is_done) for body, is_done in messages])

    def _understood(self, due: Sequence[DueTrace]) -> Sequence[Understood]:
        understood = self._line.understanding.of(due)
        failpoints.reach("in_worker")
        return understood

    def handlers(self) -> Handlers:
        """Return the handlers by name. Judge and run results arrive packed; the main process does not read them."""
        line = self._line
        own = (self.understand, self.keep_understood, self.file, self.adopt)
        plain = (line.set_aside, line.compare, line.end_elsewhere, line.close_sessions, line.score_so_far, line.dismiss)
        packed = (line.judged, line.emitted)
        return {
            **{handler.__name__: handler for handler in (*own, *plain)},
            **{handler.__name__: partial(_of_packed, handler) for handler in packed},
        }


def _of_packed(handler: Callable[..., Decision], packed: bytes, *more: Any) -> Decision:
    return handler(pickle.loads(packed), *more)  # noqa: S301 - from our process


def _open(setup: OpensLine, notify: Tell) -> Handlers:
    telemetry = Telemetry()
    server = LineServer(setup.open(telemetry))
    LIMIT.listen()

    def telling(answer: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return answer(*arguments)
        finally:
            notify("measured", telemetry.relay())

    spare_the_garbage_collector()
    return {name: partial(telling, handler) for name, handler in server.handlers().items()}


if __name__ == "__main__":
    serve(_open)
