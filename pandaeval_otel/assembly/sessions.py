"""Decides when a session is over. Pure; the caller passes the clock; it holds ids and times only."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_otel.assembly.deadlines import Deadlines
from pandaeval_otel.model import Trigger


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that is over and due for its final scores, and why."""

    session_id: str
    trigger: Trigger


@dataclass(slots=True)
class _Open:
    first_at: float
    last_at: float
    explicit: bool = False


class SessionAssembler:
    """Tracks open sessions. One closes at the first of: its explicit end, ``idle`` seconds since its last trace,
    ``max_age`` seconds since its first. Times are seconds on a monotonic clock and restart with the process."""

    def __init__(self, idle: float = 900.0, max_age: float = 86_400.0) -> None:
        self.idle, self.max_age = idle, max_age
        self._open: dict[str, _Open] = {}
        self._deadlines: Deadlines[str] = Deadlines(self._due_at)

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._open

    def forget(self, session_id: str) -> None:
        """Forgets a session that another collector continues, if it is open."""
        self._open.pop(session_id, None)

    def touch(self, session_id: str, now: float) -> None:
        """Notes that a trace of this session was decided."""
        session = self._open.get(session_id)
        if session is None:
            session = self._open[session_id] = _Open(now, now)
        session.last_at = now
        self._deadlines.set(session_id, self._deadline(session))

    def end(self, session_id: str, now: float) -> None:
        """Makes a session due at once, since the application says that it is over."""
        session = self._open.setdefault(session_id, _Open(now, now))
        session.explicit = True
        self._deadlines.set(session_id, now)

    def take_due(self, now: float, limit: int = 256) -> list[DueSession]:
        """Returns and forgets at most ``limit`` sessions that are over."""
        due: list[DueSession] = []
        while len(due) < limit and (session_id := self._deadlines.pop_due(now)) is not None:
            session = self._open.pop(session_id)
            due.append(DueSession(session_id, self._trigger(session, now)))
        return due

    def take_all(self, trigger: Trigger) -> list[DueSession]:
        """Returns and forgets all open sessions, at the end of a file."""
        due = [DueSession(session_id, trigger) for session_id in self._open]
        self._open.clear()
        return due

    def next_deadline(self) -> float | None:
        return self._deadlines.next_deadline()

    def _due_at(self, session_id: str) -> float | None:
        session = self._open.get(session_id)
        return None if session is None else self._deadline(session)

    def _deadline(self, session: _Open) -> float:
        if session.explicit:
            return session.last_at
        return min(session.last_at + self.idle, session.first_at + self.max_age)

    def _trigger(self, session: _Open, now: float) -> Trigger:
        if session.explicit:
            return Trigger.EXPLICIT
        return Trigger.MAX_AGE if now >= session.first_at + self.max_age else Trigger.IDLE
