"""When an open session is scored as far as it has come."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_otel.assembly.deadlines import Deadlines

_MANY = 50
"""For each so many touches a session has to be quiet ``quiet`` seconds longer, as the cost of its scores grows."""
_AT_ONCE = 64


@dataclass(slots=True)
class _Open:
    last_at: float
    touches: int = 0
    waits: bool = True


class Interims:
    """Finds open sessions due to be scored so far: each once after a stretch of ``quiet`` seconds without a new trace
    or verdict, longer for one of many traces; ``None``: never. Pure. Times are seconds on a monotonic clock."""

    def __init__(self, quiet: float | None) -> None:
        self._quiet = quiet
        self._open: dict[str, _Open] = {}
        self._deadlines: Deadlines[str] = Deadlines(self._due_at)

    def __len__(self) -> int:
        """Counts the sessions that wait for their turn, or had it and are still open."""
        return len(self._open)

    def touch(self, session_id: str, now: float) -> None:
        """Notes that something was decided on which the scores of a session rest."""
        if self._quiet is None:
            return
        session = self._open.get(session_id)
        if session is None:
            session = self._open[session_id] = _Open(now)
        session.last_at, session.waits = now, True
        session.touches += 1
        self._deadlines.set(session_id, self._deadline(session))

    def forget(self, session_id: str) -> None:
        """Drops a session that is over; its scores for good follow."""
        self._open.pop(session_id, None)

    def take_due(self, now: float) -> list[str]:
        """Returns at most 64 sessions that are due; each then waits for its next touch."""
        due: list[str] = []
        while len(due) < _AT_ONCE and (session_id := self._deadlines.pop_due(now)) is not None:
            self._open[session_id].waits = False
            due.append(session_id)
        return due

    def _due_at(self, session_id: str) -> float | None:
        session = self._open.get(session_id)
        return None if session is None or not session.waits else self._deadline(session)

    def _deadline(self, session: _Open) -> float:
        assert self._quiet is not None
        return session.last_at + self._quiet * (1 + session.touches // _MANY)
