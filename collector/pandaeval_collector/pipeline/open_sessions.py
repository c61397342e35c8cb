"""State machines of open sessions, without content. Callers pass monotonic seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from pandaeval_collector.pipeline.timing import Timing
from pandaeval_otel.assembly.traces import Deadlines
from pandaeval_otel.model import Trigger

_MANY = 50
"""Per this number of touches, a session must be quiet for another ``session_interim``, because scoring costs grow."""
_SCORED, _CLOSED, _COMPARED = 64, 256, 64
"""Sessions scored provisionally, closed, and compared at once."""
_LOOK_S = 0.5
"""Seconds between two checks for the judge's answers."""


class OpenState(Enum):
    """The state of an open session. Closing is separate, because a session may reopen."""

    OPEN = auto()
    """The session has changed since its last provisional score."""
    QUIET = auto()
    """The session has a provisional score, and has not changed since."""
    OVER = auto()
    """The application has ended the session."""
    AWAITING_JUDGE = auto()
    """The session has ended, but the judge's answers are missing."""


@dataclass(slots=True)
class OpenSession:
    """``touches``: number of changes. ``over_at``, ``trigger``: end. ``look_at``: next check for verdicts."""

    first_at: float
    last_at: float
    state: OpenState = OpenState.OPEN
    touches: int = 0
    over_at: float = 0.0
    trigger: Trigger = Trigger.IDLE
    look_at: float = 0.0


class OpenSessions:
    """Sessions without final scores.

    A session ends explicitly, ``session_idle`` seconds after its last trace, or ``session_max_age`` after its first. It
    waits at most ``judge_wait`` seconds for judges.
    """

    def __init__(self, timing: Timing, pending: Callable[[Collection[str]], Collection[str]]) -> None:
        self._timing, self._pending = timing, pending
        self._sessions: dict[str, OpenSession] = {}
        self._deadlines: Deadlines[str] = Deadlines(self._due_at)
        self._closing: set[str] = set()
        self._uncompared: dict[str, int] = {}
        self._session_of: dict[bytes, str] = {}
        self._undecided: dict[str, set[bytes]] = {}
        self._ending: set[str] = set()

    def __len__(self) -> int:
        return len(self._sessions.keys() | self._closing)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._sessions or session_id in self._closing

    def touch(self, session_id: str, now: float, *, goes_on: bool = True) -> None:
        """Record a change that affects scores. ``goes_on``: reopens a waiting session."""
        session = self._sessions.get(session_id)
        if session is not None and session.state is OpenState.AWAITING_JUDGE:
            if not goes_on:
                return
            session = None
        if session is None:
            session = self._sessions[session_id] = OpenSession(now, now)
        session.last_at = now
        session.touches += 1
        if session.state is OpenState.QUIET:
            session.state = OpenState.OPEN
        self._schedule(session_id)

    def end(self, session_id: str, now: float) -> None:
        session = self._sessions.setdefault(session_id, OpenSession(now, now))
        session.trigger = Trigger.EXPLICIT
        if session.state is not OpenState.AWAITING_JUDGE:
            session.state = OpenState.OVER
        self._schedule(session_id)

    def forget(self, session_id: str) -> None:
        """Forget a session that another collector continues. If the session is closing, it is still closed here."""
        self._sessions.pop(session_id, None)
        self._uncompared.pop(session_id, None)

    def take_due(self, now: float) -> tuple[dict[str, Trigger], list[str]]:
        """Return sessions to close by trigger, marked as closing, and quiet sessions for provisional scores.

        Call again until it returns no session.
        """
        over: list[str] = []
        quiet: list[str] = []
        while len(over) < _CLOSED and len(quiet) < _SCORED and (session_id := self._deadlines.pop_due(now)) is not None:
            session = self._sessions[session_id]
            if session.state is OpenState.AWAITING_JUDGE:
                over.append(session_id)
            elif now >= self._over_at(session):
                session.over_at = now
                if session.state is not OpenState.OVER:
                    at_age = now >= session.first_at + self._timing.session_max_age
                    session.trigger = Trigger.MAX_AGE if at_age else Trigger.IDLE
                over.append(session_id)
            else:
                session.state = OpenState.QUIET
                quiet.append(session_id)
                self._schedule(session_id)
        return self._close_answered(over, now), quiet

    def take_all(self, trigger: Trigger) -> dict[str, Trigger]:
        return self._close(dict.fromkeys(self._sessions, trigger))

    def closed(self, session_ids: Iterable[str]) -> None:
        """Record that closing stopped, successful or not."""
        self._closing.difference_update(session_ids)

    # -- comparing -----------------------------------------------------------------------------------------------

    def grew(self, session_id: str, start_ns: int) -> None:
        self._uncompared[session_id] = min(start_ns, self._uncompared.get(session_id, start_ns))

    def take_uncompared(self) -> dict[str, int]:
        """Return sessions of :meth:`grew`. Repeat for more."""
        return {id_: self._uncompared.pop(id_) for id_ in list(self._uncompared)[:_COMPARED]}

    def compared(self, session_ids: Iterable[str]) -> list[str]:
        """Exclude sessions with uncompared members, whose scores would share an id."""
        return sorted(id_ for id_ in session_ids if id_ not in self._uncompared)

    # -- ends that wait for traces -------------------------------------------------------------------------------
    # The store keeps both over a restart: the session of a trace with its chunks, and the endings in a table.

    def expect(self, trace_id: bytes, session_id: str) -> None:
        if session_id and self._session_of.get(trace_id) != session_id:
            self.decided(trace_id)
            self._session_of[trace_id] = session_id
            self._undecided.setdefault(session_id, set()).add(trace_id)

    def may_end(self, session_id: str) -> bool:
        """Return whether an ended session can close now. If not, :meth:`decided` returns it later."""
        if self._undecided.get(session_id):
            self._ending.add(session_id)
            return False
        return True

    def decided(self, trace_id: bytes) -> str | None:
        """Record a decided trace; return the session that ends with it."""
        session_id = self._session_of.pop(trace_id, None)
        if session_id is None:
            return None
        undecided = self._undecided[session_id]
        undecided.discard(trace_id)
        if undecided:
            return None
        del self._undecided[session_id]
        if session_id not in self._ending:
            return None
        self._ending.discard(session_id)
        return session_id

    def _close_answered(self, over: Collection[str], now: float) -> dict[str, Trigger]:
        wait = self._timing.judge_wait
        pending = self._pending(over) if wait and over else ()
        ready: dict[str, Trigger] = {}
        for session_id in over:
            session = self._sessions[session_id]
            if session_id in pending and now < session.over_at + wait:
                session.state = OpenState.AWAITING_JUDGE
                # At the same times as all waiting sessions, so that they share a look-up.
                session.look_at = min((now // _LOOK_S + 1) * _LOOK_S, session.over_at + wait)
                self._schedule(session_id)
            else:
                ready[session_id] = session.trigger
        return self._close(ready)

    def _close(self, sessions: dict[str, Trigger]) -> dict[str, Trigger]:
        for session_id in sessions:
            del self._sessions[session_id]
        self._closing.update(sessions)
        return sessions

    def _schedule(self, session_id: str) -> None:
        self._deadlines.set(session_id, self._deadline(self._sessions[session_id]))

    def _due_at(self, session_id: str) -> float | None:
        session = self._sessions.get(session_id)
        return None if session is None else self._deadline(session)

    def _deadline(self, session: OpenSession) -> float:
        if session.state is OpenState.AWAITING_JUDGE:
            return session.look_at
        quiet = self._timing.session_interim
        if session.state is not OpenState.OPEN or quiet is None:
            return self._over_at(session)
        return min(self._over_at(session), session.last_at + quiet * (1 + session.touches // _MANY))

    def _over_at(self, session: OpenSession) -> float:
        if session.state is OpenState.OVER:
            return session.last_at
        return min(session.last_at + self._timing.session_idle, session.first_at + self._timing.session_max_age)
