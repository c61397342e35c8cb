"""Outcome of failed judge calls: another attempt, or the end."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.base.untrusted.foreign import explained, told
from pandaeval_collector.judge.call import CallFailedError, CallFailure, OverBudgetError
from pandaeval_collector.judge.client import NoVerdictError
from pandaeval_collector.judge.known_models import LEAST_RECORD, MOST_RECORD, SMALLER_RECORD, USUAL_RECORD
from pandaeval_collector.store import Job
from pandaeval_otel.base.component_errors import ERRORS, METRIC

_MAX_CRASHES = 2
_WHAT: Mapping[CallFailure, str] = {
    CallFailure.TIMEOUT: "the judge did not answer in time",
    CallFailure.CRASHED: "the judge process crashed twice",
    CallFailure.REFUSED: "the provider rejected this prompt",
    CallFailure.TOO_LONG: "the record is too long for the context window of the judge; lower judge.context_tokens",
    CallFailure.DENIED: "the judge could not be called",
}
"""Why there is no answer, for people."""

_SAME_PAUSE_S = 1.0
_IN_VAIN_AT_FIRST, _IN_VAIN = 1, 10
"""Consecutive pauses after which an interactive run stops calling: fewer if the judge has never answered."""

_log = logging.getLogger(__name__)
_KEY = (
    "set the API key of the provider in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...), or name its variable "
    "in judge.api_key_env; if the key is valid, check judge.model"
)
_START = "give the collector more CPU time and memory"
_NAME = "write judge.model as provider/model in litellm format, such as openai/gpt-4o-mini"
_CURES: Mapping[CallFailure, str] = {
    CallFailure.DENIED: _KEY,
    CallFailure.TIMEOUT: "raise judge.timeout, or lower judge.concurrency",
    CallFailure.TOO_LONG: "set judge.context_tokens to the tokens that fit into its context window",
    CallFailure.UNAVAILABLE: "check that its server is reachable and that judge.api_base is correct",
}
_SIGNS = (
    ("llm provider not provided", _NAME),
    ("credential", _KEY),
    ("api key", _KEY),
    ("api_key", _KEY),
    ("does not start", _START),
)
"""Words in errors that are more specific than the error's class."""


RecordBudget = Callable[[str], Awaitable[int]]
"""Returns the tokens of a record that fit into a model's window, if known."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Number and delay of attempts.

    Delays have full jitter below ``first`` x 2^n, at most ``longest`` seconds. ``interactive``: do not retry errors
    that need a person.
    """

    attempts: int = 8
    max_age: float = 86_400.0
    first: float = 5.0
    longest: float = 900.0
    interactive: bool = False

    def wait(self, attempts: int) -> float:
        return random.uniform(0.0, min(self.longest, self.first * 2.0 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class Later:
    """Another attempt at ``due_at`` (running clock).

    ``pause``: uncounted, and all other jobs wait too. ``free``: uncounted.
    """

    due_at: float
    error: str
    crashed: bool = False
    pause: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The job is dead; its result has the reason."""

    finding: Unscored
    error: str


def after_failure(job: Job, error: CallFailedError, patience: Patience, now: float) -> Later | GivenUp:
    """Decide about a job after a failed call and its retries. ``now``: running clock."""
    message = told(error)
    why = Why.TIMEOUT if error.failure is CallFailure.TIMEOUT else Why.JUDGE_FAILED
    what = _WHAT.get(error.failure, "the judge could not be reached")
    given_up = GivenUp(Unscored(why, f"{what}: {message} (attempts: {job.attempts})"), message)
    match error.failure:
        case CallFailure.REFUSED | CallFailure.TOO_LONG:
            return given_up
        case CallFailure.CRASHED:
            if job.crashes + 1 >= _MAX_CRASHES:
                return given_up
            return Later(now, message, crashed=True)
        case CallFailure.COOLDOWN if now - job.created_at <= patience.max_age:
            return Later(now + (error.retry_after or patience.longest), message, pause=True)
        case CallFailure.DENIED if patience.interactive:
            return given_up
        case _:
            if job.attempts >= patience.attempts or now - job.created_at > patience.max_age:
                return given_up
            return Later(now + max(error.retry_after or 0.0, patience.wait(job.attempts)), message)


def unanswered(error: Exception, metric: str) -> Unscored:
    """Return why a metric has no verdict. An error of its own code is noted."""
    match error:
        case NoVerdictError():
            return Unscored(error.why, str(error))
        case OverBudgetError():
            return Unscored(Why.OVER_BUDGET, "the day's budget is used up (judge.daily_usd)")
    ERRORS.note(METRIC, metric, error)
    return Unscored(Why.METRIC_ERROR, explained(error))


class Pauses:
    """Pauses of jobs while a judge fails. ``interactive``: a person waits. Running clock; one event loop."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._until = 0.0
        self._in_vain, self._answered = 0, False
        """Pauses since a judge answered last, and whether one ever did."""
        self._last = ""

    @property
    def given_up(self) -> str:
        most = _IN_VAIN if self._answered else _IN_VAIN_AT_FIRST
        if not self._interactive or self._in_vain <= most:
            return ""
        return f"the judge could not be reached: {self._last or 'no answer'} (not tried again)"

    def room(self, now: float, slots: int) -> int:
        """Return how many jobs may run: none in a pause, one test job after it."""
        if self.given_up:
            return slots
        if now < self._until:
            return 0
        return 1 if self._in_vain else slots

    def begin(self, until: float) -> None:
        """Pause until ``until``, after a call that was not tried."""
        if until > self._until + _SAME_PAUSE_S:
            self._until = until
            self._in_vain += 1

    def answered(self) -> None:
        """Record an answer, and reset the count of pauses."""
        self._in_vain, self._answered = 0, True

    def failed(self, error: CallFailedError) -> None:
        if error.failure is not CallFailure.COOLDOWN:
            self._last = told(error)


class FailureWarnings:
    """Logs each judge failure once. One event loop."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def add(self, model: str, error: CallFailedError) -> None:
        """Log the cure of a lasting failure, once per model and cure."""
        cure = cure_of(error)
        if cure and (model, cure) not in self._logged:
            self._logged.add((model, cure))
            _log.warning("the judge %s cannot be called: %s; %s", model, told(str(error).partition("\n")[0]), cure)


def cure_of(error: CallFailedError) -> str:
    """Return the cure for a failed call; ``""`` if only waiting helps."""
    error_text = str(error).lower()
    signed = next((cure for sign, cure in _SIGNS if sign in error_text), None)
    return signed or _CURES.get(error.failure, "")


class RecordBudgets:
    """Record tokens per model. On one event loop."""

    def __init__(self, known: RecordBudget | None = None) -> None:
        """``known`` may raise :class:`CallFailedError`, as the model call then will."""
        self._known = known
        self._smaller: dict[str, int] = {}

    async def of(self, model: str) -> int:
        """Return a model's record tokens: 400 to 32,000 unless the configuration allows more."""
        if model in self._smaller:
            return self._smaller[model]
        try:
            return USUAL_RECORD if self._known is None else await self._known(model)
        except CallFailedError:
            return USUAL_RECORD

    def was_too_long(self, model: str, shown: int) -> int:
        """Return and keep a smaller budget after a model refused ``shown`` tokens."""
        smaller = max(LEAST_RECORD, min(SMALLER_RECORD, shown * 2 // 3))
        if smaller < self._smaller.get(model, MOST_RECORD):
            self._smaller[model] = smaller
            _log.warning(
                "the context window of the judge %s is too short for %d tokens; the limit is now %d tokens (set "
                "judge.context_tokens)",
                model,
                shown,
                smaller,
            )
        return smaller
