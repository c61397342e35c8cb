"""When no judge is asked as it failed too often just now: how long all jobs wait, and when nobody asks any more."""

from __future__ import annotations

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.judge.call import CallFailedError, CallFailure

_SAME_PAUSE_S = 1.0
_IN_VAIN_AT_FIRST, _IN_VAIN = 1, 10
"""After more pauses in a row than this, a run that somebody waits for asks no more: a judge that never answered is not
there, one that did may come back."""


class Pauses:
    """The pauses of one runner. ``interactive``: somebody waits for its jobs. Times are those of the store's running
    clock. On one event loop."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._until = 0.0
        self._in_vain, self._answered = 0, False
        """Pauses since a judge answered last, and whether one ever did."""
        self._last = ""

    @property
    def given_up(self) -> str:
        """Why no judge is asked any more in this run; ``""`` as long as it is."""
        most = _IN_VAIN if self._answered else _IN_VAIN_AT_FIRST
        if not self._interactive or self._in_vain <= most:
            return ""
        return f"the judge could not be reached, and was not asked again ({self._last or 'no answer'})"

    def room(self, now: float, slots: int) -> int:
        """How many jobs may run now: none in a pause; after one, a single job finds out whether the judge is back."""
        if self.given_up:
            return slots
        if now < self._until:
            return 0
        return 1 if self._in_vain else slots

    def begin(self, until: float) -> None:
        """A call was not even tried, and none will be before ``until``."""
        if until > self._until + _SAME_PAUSE_S:
            self._until = until
            self._in_vain += 1

    def answered(self) -> None:
        """A judge gave an answer, whatever it holds."""
        self._in_vain, self._answered = 0, True

    def failed(self, error: CallFailedError) -> None:
        """A call failed."""
        if error.failure is not CallFailure.COOLDOWN:
            self._last = told(error)
