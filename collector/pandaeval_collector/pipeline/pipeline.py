"""The straight line of a running collector: take in, store, acknowledge; decide what is due; commit; hand on.

One event loop owns the assemblers, so they have no locks; scoring runs on one worker thread (and in processes of its
own, with ``line.workers``); SQLite writes on another, and the line waits for its commits.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from pandaeval_collector.line.line import Decision, Line
from pandaeval_collector.line.understanding import NotUnderstoodError, Run, Understands
from pandaeval_collector.pipeline.commits import Settling
from pandaeval_collector.pipeline.intake import Intake
from pandaeval_collector.pipeline.judge_wait import Awaited
from pandaeval_collector.pipeline.lookahead import Ahead, Batch, Here
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.pipeline.trial import Trial
from pandaeval_collector.pipeline.underway import HOPELESS, TOGETHER, UnderWay
from pandaeval_collector.pipeline.upkeep import Upkeep
from pandaeval_collector.receivers import Accepted, Submitted
from pandaeval_collector.runtime import failpoints
from pandaeval_collector.store import ResultRow, Store, WriteSet
from pandaeval_collector.telemetry import Telemetry
from pandaeval_collector.workers import Workers
from pandaeval_otel.assembly import DueTrace, SessionAssembler, TraceAssembler
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)

_TICK_S = 0.05
_FEW, _GATHER_S = 128, 0.01
"""After a batch of fewer traces others get the time to come together: each batch has costs of its own."""
_LOOK_S = 0.5
"""Under load, so often it is looked which sessions are over."""
_BATCH = 256
"""Filing many traces of a session at once takes less than one by one; all of a batch is in memory."""
_RETRY_S = 1.0
T = TypeVar("T")


class Pipeline:
    """Implements :class:`pandaeval_collector.receivers.Ingest`. ``on_results`` is called on the event loop with the
    new rows of every commit, in order; ``on_runs`` with the agents' runs that were decided. ``understands``: ``None``
    has the line itself do it; ``trial`` makes the process for traces that another one died over."""

    def __init__(
        self,
        store: Store,
        line: Line,
        timing: Timing | None = None,
        telemetry: Telemetry | None = None,
        on_results: Callable[[Sequence[ResultRow]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_runs: Callable[[Sequence[Run]], None] | None = None,
        understands: Understands | None = None,
        trial: Callable[[], Workers] | None = None,
    ) -> None:
        self.timing = timing or Timing()
        self.telemetry = telemetry or Telemetry()
        self._store, self._line, self._clock = store, line, clock
        self._on_results = on_results or (lambda rows: None)
        self._on_runs = on_runs or (lambda runs: None)
        self._traces = TraceAssembler(self.timing.close)
        self._sessions = SessionAssembler(self.timing.session_idle, self.timing.session_max_age)
        self._awaited = Awaited(store.jobs.pending_in, self.timing.judge_wait)
        self._intake = Intake(
            store, self._traces, self.telemetry, clock, self.end_session, is_draining=lambda: self._stopping
        )
        timing = self.timing
        self._upkeep = Upkeep(store, timing.late_window, timing.retention, self.telemetry, self._traces.reopened)
        self._settling = Settling(store, self._patiently, self._settled)
        self._under_way = UnderWay(store.path)
        self._trial = Trial(understands or Here(line.understanding), self._under_way.suspects, trial)
        self._ahead = Ahead(self._trial, self._patiently, self._under_way)
        self._held: list[DueTrace] = []
        """Suspects that are due, each to be decided alone."""
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._closing = 0
        self.rounds = 0
        """How often it was looked what is due, and that was dealt with: a sign of life."""

    @property
    def open_traces(self) -> int:
        """Traces that are not decided yet."""
        return len(self._traces) + self._traces.deciding

    @property
    def open_sessions(self) -> int:
        """Sessions that are not scored for good yet."""
        return len(self._sessions) + len(self._awaited) + self._closing

    @property
    def open_items(self) -> int:
        """Spans and log records that no decision covers yet. Takes time for every open trace."""
        return self._traces.items

    @property
    def lag(self) -> float:
        """How long the trace that should be decided next is overdue, seconds."""
        due_at = self._traces.next_deadline()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    @property
    def is_tidying(self) -> bool:
        """Whether what is old is being dropped just now."""
        return self._upkeep.is_at_work

    # -- in ------------------------------------------------------------------------------------------------------

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        """Stores the spans of an OTLP request; returns after the commit. Raises a ``Refusal``."""
        return await self._intake.traces(request, large)

    async def logs(self, request: bytes, large: bool = False) -> Accepted:
        """Stores the log records of an OTLP request that belong to traces; returns after the commit."""
        return await self._intake.logs(request, large)

    async def submit(self, traces: Sequence[Submitted], large: bool = False) -> list[str]:
        """Stores completed traces in one commit, and closes those that are no fragments; see
        :class:`pandaeval_collector.receivers.SubmissionIngest`."""
        return await self._intake.submit(traces, large)

    # -- out -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Resumes what the store holds, then begins to decide."""
        await self._settling.on_thread(self._resume)
        self._task = asyncio.create_task(self._run(), name="pandaeval-pipeline")

    async def stop(self, decide: bool = False) -> None:
        """Finishes the decision at hand and stops. Open traces stay in the store, or are decided as they are."""
        self._stopping = True
        self._ahead.stop()
        if self._task is not None:
            try:
                await self._task
            except (sqlite3.OperationalError, NotUnderstoodError) as error:
                _log.error("the last decision could not be stored (%s); the next start takes it up again", error)
        if decide:
            await self.close_all(Trigger.SHUTDOWN)
        await self._ahead.drop()
        await self._settling.close()
        await self._trial.close()
        self._under_way.close()
        await self._upkeep.stop()

    async def close_all(self, trigger: Trigger) -> None:
        """Decides every open trace, then every open session."""
        await self.decide_all(trigger)
        open_sessions = [*self._sessions.take_all(trigger), *self._awaited.take_all(trigger)]
        await self._close_sessions({session.session_id: trigger for session in open_sessions})

    async def decide_all(self, trigger: Trigger) -> None:
        """Decides every open trace."""
        while True:
            self._ahead.fill(partial(self._taken, partial(self._traces.take_all, trigger, _BATCH)))
            batch = self._ahead.next()
            if batch is not None:
                await self._begin(batch)
            elif self._held:
                await self._next_alone()
            else:
                break

    async def session_now(self, session_id: str) -> list[bytes]:
        """The results that a session would have if it ended now, as JSON objects; none of them is stored."""
        results = await self._settling.on_thread(lambda: self._line.session_now(session_id))
        return [result.to_json() for result in results]

    def end_session(self, session_id: str) -> None:
        """The application says that a session is over."""
        self._sessions.end(session_id, self._clock())

    def close_trace(self, trace_id: bytes) -> None:
        """The application says that a trace is done."""
        self._traces.close(trace_id)

    def _resume(self) -> None:
        now = self._clock()
        for session_id in self._store.open_sessions():
            self._sessions.touch(session_id, now)
        self._intake.resume()
        self._under_way.resume(self._traces.knows)
        if len(self._traces):
            _log.info("resumed %d open traces and %d open sessions", len(self._traces), len(self._sessions))

    async def _run(self) -> None:
        upkeep_at = self._clock() + self.timing.upkeep
        look_at = 0.0
        while not self._stopping:
            now = self._clock()
            self._ahead.fill(partial(self._taken, partial(self._traces.take_due, now, _BATCH)))
            batch = self._ahead.next()
            if batch is not None:
                await self._begin(batch)
            elif self._held:
                await self._next_alone()
            if batch is None or now >= look_at:
                look_at = now + _LOOK_S
                await self._or_left(self._close_due(now), "sessions")
            if now >= upkeep_at:
                upkeep_at = now + self.timing.upkeep
                self._upkeep.begin()
            self.rounds += 1
            if batch is None or len(batch.due) < _FEW:
                await asyncio.sleep(_TICK_S if batch is None else _GATHER_S)

    def _taken(self, take: Callable[[], Sequence[DueTrace]]) -> Sequence[DueTrace]:
        """What is due, but for suspects that have to be alone: nothing else is begun until they are decided."""
        if self._held:
            return ()
        due = take()
        deaths = self._under_way.deaths
        self._held = sorted(
            (each for each in due if deaths(each.trace_id) >= TOGETHER), key=lambda d: deaths(d.trace_id)
        )
        return [each for each in due if deaths(each.trace_id) < TOGETHER] if self._held else due

    async def _next_alone(self) -> None:
        """Decides the next suspect that has to be alone: those that most processes died over come last."""
        due = self._held.pop(0)
        if self._under_way.deaths(due.trace_id) >= HOPELESS:
            why = "the collector ended each time while it was being decided"
            await self._or_left(self._set_aside(due, "process_ended", why), "a trace")
        else:
            await self._begin(self._ahead.begin([due]))

    async def _begin(self, batch: Batch) -> None:
        """Returns when the batch is committed. The next one is taken afterwards: what becomes due meanwhile is in it,
        and does not wait for one more."""
        await self._or_left(self._decide(batch), f"{len(batch.due)} traces")

    async def _or_left(self, work: Awaitable[None], what: str) -> None:
        """The last resort: of what fails here nothing is lost, and it is taken up again at the next start."""
        try:
            await work
        except Exception:
            if self._stopping:
                raise
            _log.exception("%s could not be dealt with before the next start", what)
            self.telemetry.add("pandaeval.store.errors", "left")

    async def _close_due(self, now: float) -> None:
        sessions = self._awaited.ready(self._sessions.take_due(now), now)
        if sessions:
            await self._close_sessions({session.session_id: session.trigger for session in sessions})

    async def _decide(self, batch: Batch) -> None:
        done = False
        try:
            await self._decide_or_give_up(batch)
            done = True
        finally:
            self._under_way.end([each.trace_id for each in batch.due], done)
            await self._trial.rest()

    async def _decide_or_give_up(self, batch: Batch) -> None:
        failpoints.reach("before_decide")
        due = batch.due
        try:
            understood = await batch.ready
            await self.settle(lambda: self._line.file(due, understood()))
        except Exception as error:
            if self._stopping:
                raise
            if len(due) > 1:
                for each in due:
                    await self._decide_or_give_up(self._ahead.begin([each]))
                return
            _log.exception("trace %s could not be decided", due[0].trace_id.hex())
            kind = error.kind if isinstance(error, NotUnderstoodError) else type(error).__name__
            await self._set_aside(due[0], kind, str(error).partition("\n")[0])
            return
        self._decided(due)

    async def _set_aside(self, due: DueTrace, kind: str, why: str) -> None:
        """Decides a trace without looking at it; its spans stay in the store as long as results do."""
        await self.settle(lambda: self._line.set_aside(due, kind, why))
        self._under_way.end([due.trace_id])
        self._decided([due])

    def _decided(self, due: Sequence[DueTrace]) -> None:
        for each in due:
            self._intake.decided(each)
        for trigger, number in Counter(each.trigger.value for each in due).items():
            self.telemetry.add("pandaeval.traces", "decided", number, trigger)
        self.telemetry.add("pandaeval.items", "decided", sum(each.new_items for each in due))

    async def _close_sessions(self, sessions: dict[str, Trigger]) -> None:
        self._closing += len(sessions)
        try:
            await self.settle(lambda: self._line.close_sessions(sorted(sessions), sessions.__getitem__))
        except Exception as error:
            if self._stopping:
                raise
            if len(sessions) > 1:
                for session_id, trigger in sessions.items():
                    await self._close_sessions({session_id: trigger})
                return
            _log.exception("a session could not be scored")
            await self.settle(lambda: Decision(WriteSet(closed=set(sessions))))
            self.telemetry.add("pandaeval.sessions", "failed", 1, type(error).__name__)
        finally:
            self._closing -= len(sessions)
        told = [session_id for session_id, trigger in sessions.items() if trigger is Trigger.EXPLICIT]
        if told:
            # After the commit: where a crash comes in between, the session is closed once more, with the same results.
            await self._patiently(lambda: asyncio.wrap_future(self._store.forget_endings(told)))

    async def settle(self, decide: Callable[[], Decision]) -> None:
        """Has something decided and committed, see :meth:`Settling.settle`. It is not given up because the disk is full
        or failing just now."""
        await self._settling.settle(decide)

    def _settled(self, decision: Decision, rows: Sequence[ResultRow]) -> None:
        now = self._clock()
        for session_id in decision.changes.touched:
            if decision.runs:
                self._awaited.goes_on(session_id)
            if session_id not in self._awaited:
                self._sessions.touch(session_id, now)
        for trace_id, kind in decision.failed.items():
            _log.error("trace %s is set aside (%s): its results are unscored", trace_id.hex(), kind)
            self.telemetry.add("pandaeval.traces", "failed", 1, kind)
        try:
            if rows:
                self._on_results(rows)
            if decision.runs:
                self._on_runs(decision.runs)
        except Exception:  # noqa: BLE001 - the decision itself is committed, whoever watches
            _log.exception("what watches the results failed")

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except sqlite3.OperationalError as error:
                _log.error("the store fails (%s); trying again in %.0f s", error, _RETRY_S)
                self.telemetry.add("pandaeval.store.errors", "retried")
                if self._stopping:
                    raise
                await asyncio.sleep(_RETRY_S)
