"""Holds back sessions that are over while judges still have to answer about their traces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pandaeval_otel.assembly import DueSession
from pandaeval_otel.model import Trigger

_LOOK_S = 0.5


class Awaited:
    """Holds a session back for at most ``longest`` seconds after it was over; 0: none is held. The session is scored
    with the answers that came by then; a later answer makes a new revision of its scores. Pure but for ``pending``,
    which returns those of the given sessions in which a judge has yet to be asked. Times are seconds on a monotonic
    clock."""

    def __init__(self, pending: Callable[[Collection[str]], Collection[str]], longest: float) -> None:
        self._pending, self._longest = pending, longest
        self._held: dict[str, tuple[DueSession, float]] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._held

    def ready(self, due: Sequence[DueSession], now: float) -> Sequence[DueSession]:
        """Takes sessions that are over and returns those to be scored now, held ones included; it forgets what it
        returns."""
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
        """Releases a held session because another trace of it came: it was not over."""
        self._held.pop(session_id, None)

    def take_all(self, trigger: Trigger) -> list[DueSession]:
        """Releases all held sessions, to be scored with the answers that there are."""
        held = [DueSession(session_id, trigger) for session_id in self._held]
        self._held.clear()
        return held

    def _over(self, since: float, now: float) -> bool:
        return now - since >= self._longest
