"""Pauses all jobs while the judge fails, and gives up on a judge that never answers."""

from __future__ import annotations

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.judge.call import CallFailedError, CallFailure

_SAME_PAUSE_S = 1.0
_IN_VAIN_AT_FIRST, _IN_VAIN = 1, 10
"""After more pauses in a row than this, a run that somebody waits for asks no more: a judge that never answered is not
there, one that did may come back."""


class Pauses:
    """The pauses in which a runner's jobs wait for a judge that fails. ``interactive``: somebody waits for the jobs.
    Times are those of the store's running clock. On one event loop."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._until = 0.0
        self._in_vain, self._answered = 0, False
        """Pauses since a judge answered last, and whether one ever did."""
        self._last = ""

    @property
    def given_up(self) -> str:
        """Why this run asks no judge any more; ``""`` as long as it asks."""
        most = _IN_VAIN if self._answered else _IN_VAIN_AT_FIRST
        if not self._interactive or self._in_vain <= most:
            return ""
        return f"the judge could not be reached, and was not asked again ({self._last or 'no answer'})"

    def room(self, now: float, slots: int) -> int:
        """Returns how many jobs may run now: none in a pause; after one, a single job to test the judge."""
        if self.given_up:
            return slots
        if now < self._until:
            return 0
        return 1 if self._in_vain else slots

    def begin(self, until: float) -> None:
        """Begins a pause until ``until``, after a call that was not even tried."""
        if until > self._until + _SAME_PAUSE_S:
            self._until = until
            self._in_vain += 1

    def answered(self) -> None:
        """Notes that a judge answered, whatever it said, and ends the count of pauses in vain."""
        self._in_vain, self._answered = 0, True

    def failed(self, error: CallFailedError) -> None:
        """Notes the error of a failed call for :attr:`given_up`."""
        if error.failure is not CallFailure.COOLDOWN:
            self._last = told(error)
