"""Sessions that are over while judges are still being asked about their traces: scored when the answers are there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pandaeval_otel.assembly import DueSession
from pandaeval_otel.model import Trigger

_LOOK_S = 0.5


class Awaited:
    """Holds a session back for at most ``longest`` seconds after it was over; 0: none is held. What was said by then is
    its score, and what is said later makes a revision. Pure but for ``pending``, which says in which of some sessions
    a judge has yet to be asked; times are seconds on a monotonic clock."""

    def __init__(self, pending: Callable[[Collection[str]], Collection[str]], longest: float) -> None:
        self._pending, self._longest = pending, longest
        self._held: dict[str, tuple[DueSession, float]] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._held

    def ready(self, due: Sequence[DueSession], now: float) -> Sequence[DueSession]:
        """Of those that are over, now or before, the ones to be scored; they are forgotten here."""
        if not self._longest:
            return due
        for session in due:
            self._held.setdefault(session.session_id, (session, now))
        if not self._held or (now < self._look_at and not due):
            return ()
        self._look_at = now + _LOOK_S
        pending = self._pending(self._held)
        found = [session for id_, (session, at) in self._held.items() if id_ not in pending or self._over(at, now)]
        for session in found:
            del self._held[session.session_id]
        return found

    def goes_on(self, session_id: str) -> None:
        """A trace came to it: it was not over."""
        self._held.pop(session_id, None)

    def take_all(self, trigger: Trigger) -> list[DueSession]:
        """All that are held, to be scored as they are."""
        held = [DueSession(session_id, trigger) for session_id in self._held]
        self._held.clear()
        return held

    def _over(self, since: float, now: float) -> bool:
        return now - since >= self._longest
