"""Decides what happens to a job after its metric ran: a result, another try, or the end."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.store import Job, JobEnd

_MAX_CRASHES = 2


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a job is tried. Waits have full jitter below ``first`` x 2^n, at most ``longest``
    seconds. ``interactive``: somebody waits for it, so that what only a person can put right is not tried again."""

    attempts: int = 8
    max_age: float = 86_400.0
    first: float = 5.0
    longest: float = 900.0
    interactive: bool = False

    def wait(self, attempts: int) -> float:
        """Seconds until the next try, after this many."""
        return random.uniform(0.0, min(self.longest, self.first * 2.0 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class Later:
    """Try again at ``due_at`` of the store's running clock. ``free``: this try does not count; ``pause``: nobody
    else should try before either."""

    due_at: float
    error: str
    crashed: bool = False
    free: bool = False
    pause: bool = False

    @property
    def reason(self) -> str:
        """Returns the outcome's reason as a label."""
        if self.crashed:
            return CallFailure.CRASHED.value
        return "waiting" if self.free else "failed"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """No more tries: the job is dead, and its result says why."""

    finding: Unscored
    error: str


def after_failure(job: Job, error: CallFailedError, patience: Patience, now: float) -> Later | GivenUp:
    """What to do about a call that failed after the retries that one call gets. ``now``: of the store's running
    clock."""
    message = told(error)
    given_up = GivenUp(Unscored(_why(error.failure), _told(job, error)), message)
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


def unfinished(job: Job, error: str, patience: Patience, now: float) -> Later | JobEnd:
    """What to do about a job whose end could not be filed or stored. ``now``: of the store's running clock."""
    if job.attempts < patience.attempts:
        return Later(now + patience.wait(job.attempts), error)
    return JobEnd(job.id, "dead", "unfinished", error)


def until_next_day(now: float) -> float:
    """Seconds until the next day begins (UTC); ``now``: Unix seconds."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (today + timedelta(days=1)).timestamp() - now


def _why(failure: CallFailure) -> Why:
    return Why.TIMEOUT if failure is CallFailure.TIMEOUT else Why.JUDGE_FAILED


def _told(job: Job, error: CallFailedError) -> str:
    what = {
        CallFailure.TIMEOUT: "the judge did not answer in time",
        CallFailure.CRASHED: "the judge's process died over it, twice",
        CallFailure.REFUSED: "the provider refuses this prompt",
        CallFailure.TOO_LONG: "the record is too long for the judge's window; set judge.context_tokens accordingly",
        CallFailure.DENIED: "the provider does not let us in (key, permission or name of the model)",
    }.get(error.failure, "the judge could not be reached")
    return f"{what}; tried {job.attempts} times, last: {told(error)}"
