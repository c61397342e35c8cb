"""The pipeline of a running collector, from request to exported result."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.peer import ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.deciding import Committer, TraceDecider
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.intake import Intake
from pandaeval_collector.pipeline.line_processes import LineProcesses
from pandaeval_collector.pipeline.owned_sessions import OwnedSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.pipeline.upkeep import Upkeep
from pandaeval_collector.store import ResultRow, Store
from pandaeval_otel.assembly import TraceAssembler
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)

_TICK_S = 0.05
_LAST_TICKS = 60
_LAST_S = 10.0
"""Maximum seconds for the current decision at shutdown."""
_FEW, _GATHER_S = 128, 0.01
"""A batch with fewer traces is small. After a small batch, the seconds to wait for more traces."""
_LOOK_S = 0.5
"""Seconds between checks for finished sessions under load."""


class Pipeline:
    """Implements :class:`pandaeval_collector.receivers.Ingest`. ``hands_over``: other collectors may own sessions."""

    def __init__(
        self,
        store: Store,
        line: LineProcesses,
        timing: Timing | None = None,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
        hands_over: bool = False,
    ) -> None:
        self.timing = timing = timing or Timing()
        self.telemetry = telemetry = telemetry or Telemetry()
        self._line, self._clock, self._hands_over = line, clock, hands_over
        self._listeners: list[Callable[[Sequence[ResultRow]], None]] = []
        self._committer = Committer(store, telemetry, self._committed)
        self._traces = TraceAssembler(timing.close)
        self._sessions = OwnedSessions(store, line, timing, self._committer, telemetry, clock)
        self._intake = Intake(
            store,
            self._traces,
            telemetry,
            clock,
            self._sessions.open,
            self.end_session,
            lambda: self._committer.stopping,
            timing.open_bytes,
        )
        self._upkeep = Upkeep(store, timing, telemetry, self._traces.reopened)
        self._decider = TraceDecider(line, self._committer, telemetry, self._intake.decided)
        self.traces, self.logs, self.submit = self._intake.traces, self._intake.logs, self._intake.submit
        """Store what came by OTLP or from a span processor, see :class:`Intake`."""
        self.consume, self.adopt = self._intake.consume, self._sessions.adopt
        """Store what came from shared topics, see :class:`Intake` and :class:`OwnedSessions`."""
        self.let_go_sessions = self._sessions.let_go
        """Forgets open sessions that another collector scores from now on."""
        self.commit = self._committer.commit
        """Has one decision made and commits it, see :meth:`Committer.commit`."""
        self._task: asyncio.Task[None] | None = None
        self.may_decide: Callable[[], bool] = lambda: True
        """Whether traces and sessions may be decided at this moment; asked before each batch."""
        self.may_close: Callable[[], bool] = lambda: True
        """Whether sessions may be closed at this moment."""
        self.rounds = 0
        """Rounds of checking for due work, as a sign of life."""

    def listen(self, on_results: Callable[[Sequence[ResultRow]], None]) -> None:
        """Call a function on the event loop with each commit's rows, in order."""
        self._listeners.append(on_results)

    @property
    def open_traces(self) -> int:
        return len(self._traces) + self._traces.deciding

    @property
    def open_sessions(self) -> int:
        return len(self._sessions.open)

    @property
    def is_full(self) -> bool:
        return self._traces.held_bytes >= self.timing.open_bytes

    @property
    def kept_for(self) -> float:
        """Current retention of results and spans in seconds."""
        return self._upkeep.kept_for()

    @property
    def open_items(self) -> int:
        """The number of undecided items; takes time in proportion to open traces."""
        return self._traces.items

    @property
    def lag(self) -> float:
        """Seconds by which the most overdue trace is late."""
        due_at = self._traces.next_deadline()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    # -- in ------------------------------------------------------------------------------------------------------

    def session_is_open(self, session_id: str) -> bool:
        return self._sessions.is_open(session_id)

    async def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Forget traces that another collector continues. Waits for running decisions."""
        for _ in range(_LAST_TICKS):
            if not any(self._traces.knows(trace_id) and trace_id not in self._traces for trace_id in trace_ids):
                break
            await asyncio.sleep(_TICK_S)
        await self._intake.let_go(trace_ids)

    def is_open(self, trace_id: bytes) -> bool:
        return self._traces.knows(trace_id)

    # -- out -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load open traces and sessions, then decide due ones."""
        await asyncio.to_thread(self._resume)
        self._task = asyncio.create_task(self._run(), name="pandaeval-pipeline")

    async def stop(self, decide: bool = False) -> None:
        """Stop after the current decision. ``decide``: decide open traces first."""
        self._committer.stopping = True
        if self._task is not None and not (await asyncio.wait({self._task}, timeout=_LAST_S))[0]:
            self._line.give_up()
        try:
            if self._task is not None:
                await self._task
            if decide:
                await self.close_all(Trigger.SHUTDOWN)
        except (sqlite3.OperationalError, ChildEndedError, ChildStartError) as error:
            _log.error("the last decision could not be made (%s); the next start takes it up again", error)
        await self._decider.drop()
        await self._committer.close()
        await self._upkeep.stop()

    async def close_all(self, trigger: Trigger) -> None:
        await self.decide_all(trigger)
        await self._sessions.close_all(trigger)

    async def decide_all(self, trigger: Trigger) -> None:
        while await self._decider.step(partial(self._traces.take_all, trigger)):
            pass

    def end_session(self, session_id: str) -> None:
        if self._hands_over:
            self._sessions.end_elsewhere(session_id)
        else:
            self._sessions.end(session_id)

    def _resume(self) -> None:
        open_sessions = self._sessions.resume()
        self._intake.resume()
        if len(self._traces):
            _log.info("resumed %d open traces and %d open sessions", len(self._traces), open_sessions)

    async def _run(self) -> None:
        upkeep_at = self._clock() + self.timing.upkeep
        self._upkeep.resume()
        look_at = 0.0
        while not self._committer.stopping:
            now = self._clock()
            decided, may = 0, self.may_decide()
            if may:
                decided = await self._decider.step(partial(self._traces.take_due, now))
            if may and (not decided or now >= look_at) and self.may_close():
                look_at = now + _LOOK_S
                await self._committer.or_left(self._sessions.compare_due(), "comparisons")
                await self._committer.or_left(self._sessions.close_due(now), "sessions")
            if now >= upkeep_at:
                upkeep_at = now + self.timing.upkeep
                self._upkeep.begin()
            self.rounds += 1
            if decided < _FEW:
                await asyncio.sleep(_GATHER_S if decided else _TICK_S)

    def _committed(self, decision: Decision, rows: Sequence[ResultRow]) -> None:
        self._sessions.committed(decision)
        for trace_id, kind in decision.failed.items():
            _log.error("trace %s is quarantined (%s): its results are unscored", trace_id.hex(), kind)
            self.telemetry.add("pandaeval.traces", "failed", 1, kind)
        try:
            if rows:
                for on_results in self._listeners:
                    on_results(rows)
        except Exception:  # noqa: BLE001 - a watcher's error must not affect the committed decision
            _log.exception("a listener for results failed")
