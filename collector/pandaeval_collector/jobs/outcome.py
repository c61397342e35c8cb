"""Decides what happens to a job whose call failed: another attempt, or the end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.store import Job

_MAX_CRASHES = 2
_WHAT: Mapping[CallFailure, str] = {
    CallFailure.TIMEOUT: "the judge did not answer in time",
    CallFailure.CRASHED: "the judge's process died over it, twice",
    CallFailure.REFUSED: "the provider refuses this prompt",
    CallFailure.TOO_LONG: "the record is too long for the judge's window; set judge.context_tokens accordingly",
    CallFailure.DENIED: "the provider does not let us in (key, permission or name of the model)",
}
"""Why there is no answer, for people."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a job is tried. Waits have full jitter below ``first`` x 2^n, at most ``longest`` seconds.
    ``interactive``: somebody waits for the job, so an error that only a person can fix is not tried again."""

    attempts: int = 8
    max_age: float = 86_400.0
    first: float = 5.0
    longest: float = 900.0
    interactive: bool = False

    def wait(self, attempts: int) -> float:
        """Returns the seconds until the next attempt, after this many."""
        return random.uniform(0.0, min(self.longest, self.first * 2.0 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class Later:
    """Asks for another attempt at ``due_at`` of the store's running clock. ``free``: this attempt does not count;
    ``pause``: no other job should be tried before either."""

    due_at: float
    error: str
    crashed: bool = False
    free: bool = False
    pause: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Ends the attempts: the job is dead, and its result says why."""

    finding: Unscored
    error: str


def after_failure(job: Job, error: CallFailedError, patience: Patience, now: float) -> Later | GivenUp:
    """Decides what happens to a job whose call failed in spite of the call's own retries. ``now``: of the store's
    running clock."""
    message = told(error)
    why = Why.TIMEOUT if error.failure is CallFailure.TIMEOUT else Why.JUDGE_FAILED
    what = _WHAT.get(error.failure, "the judge could not be reached")
    given_up = GivenUp(Unscored(why, f"{what}; tried {job.attempts} times, last: {message}"), message)
    match error.failure:
        case CallFailure.REFUSED | CallFailure.TOO_LONG:
            return given_up
        case CallFailure.CRASHED:
            if job.crashes + 1 >= _MAX_CRASHES:
                return given_up
            return Later(now, message, crashed=True)
        case CallFailure.COOLDOWN if now - job.created_at <= patience.max_age:
            return Later(now + (error.retry_after or patience.longest), message, free=True, pause=True)
        case CallFailure.DENIED if patience.interactive:
            return given_up
        case _:
            if job.attempts >= patience.attempts or now - job.created_at > patience.max_age:
                return given_up
            return Later(now + max(error.retry_after or 0.0, patience.wait(job.attempts)), message)
