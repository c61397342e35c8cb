"""One call of a model with its parameters, its answer, and the ways in which it fails."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

RECORDED = "file:"
"""The beginning of a ``judge.api_base`` that names a file of recorded replies in place of a server."""

# How a model is asked, beside what it is asked: the parameters of its calls, and how long its answers may get.
HIDDEN = 4_000
"""Tokens for a reasoning model's hidden thoughts if the effort is unknown. Unused tokens cost nothing."""
_HIDDEN: Mapping[str, int] = {
    "none": 0,
    "minimal": 1_500,
    "low": 3_000,
    "medium": 8_000,
    "high": 20_000,
    "xhigh": 32_000,
    "max": 32_000,
}
_MORE_TIMES, _MORE = 4, 8_000
"""After a cut answer, the limit is multiplied by the first and raised by the second number (of tokens)."""


def room(asked: int, parameters: Mapping[str, Any], reasons: bool, most: int | None, more: bool = False) -> int:
    """Return how many tokens an answer may take.

    ``asked``: tokens that the question needs; ``reasons``: the model is known to think before it answers; ``most``: the
    model's limit, if known; ``more``: the previous answer was cut.
    """
    wanted = parameters.get("max_tokens")
    if wanted is None:
        default = HIDDEN if reasons else 0
        effort = parameters.get("reasoning_effort")
        wanted = asked + (default if effort is None else _HIDDEN.get(effort, HIDDEN))
    if more:
        wanted = wanted * _MORE_TIMES + _MORE
    return wanted if most is None else max(1, min(wanted, most))


def answer_parameters(parameters: Mapping[str, Any]) -> str:
    """Return the parameters that may change an answer, as a text; ``""`` without any.

    Neither the limit of an answer nor the enforced format changes its content.
    """
    held = {name: value for name, value in parameters.items() if name not in ("max_tokens", "response_format")}
    return json.dumps(held, sort_keys=True, default=str) if held else ""


class CallFailure(StrEnum):
    """Why a call got no answer, after its own retries."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    COOLDOWN = "cooldown"
    """The call was not tried: the provider failed too often just now."""
    UNAVAILABLE = "unavailable"
    DENIED = "denied"
    """Key, permission or model name: trying again helps once somebody has put it right."""
    REFUSED = "refused"
    """This prompt will never be answered: it is against the provider's policy, or not as the provider wants it."""
    TOO_LONG = "too_long"
    """The prompt is longer than the model's window: a shorter record may be answered."""
    CRASHED = "crashed"
    """The worker died while it had the call."""


class CallFailedError(Exception):
    """A call got no answer. ``retry_after``: seconds that the provider asked to wait; ``answered``: the provider sent
    something unreadable, and may bill for it."""

    def __init__(
        self, failure: CallFailure, message: str, retry_after: float | None = None, answered: bool = False
    ) -> None:
        super().__init__(message)
        self.failure, self.retry_after, self.answered = failure, retry_after, answered

    def __reduce__(self) -> Any:
        return type(self), (self.failure, str(self), self.retry_after, self.answered), self.__dict__


class OverBudgetError(Exception):
    """The rest of the day's budget does not suffice for this call."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call. ``max_tokens``: for the answer; room for hidden reasoning is added. ``response_format``: the
    answer's schema in OpenAI form. ``held``: let the provider enforce the schema, else any JSON object. ``more``: the
    previous answer was cut. ``cache_key``: the agent's key for prompt caches.
    """

    model: str
    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    response_format: Mapping[str, Any] | None = None
    held: bool = False
    more: bool = False
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer. ``text``: cut beyond a verdict's length. Tokens and ``cost_usd``: the provider's if plausible,
    else estimates; cost 0 without a known price. ``cached_tokens``: part of ``prompt_tokens``. ``completion_tokens``:
    with hidden reasoning. ``seconds``: with retries. ``model``: maybe a fallback. ``cut``: ended at ``max_tokens``, so
    no verdict.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    model: str = ""
    cached_tokens: int = 0
    cut: bool = False
    max_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


Permit = Callable[[str, bool, int], Awaitable[None]]
"""Awaited before each attempt, including retries and fallbacks. Receives the model, whether the previous reply was
unreadable, and the maximum answer tokens. An exception ends the call before sending.
"""


class Caller(Protocol):
    """Something that answers calls. On one event loop."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Ask the model. Raises :class:`CallFailedError` or :class:`OverBudgetError`."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """How a judge is reached, and its limits.

    ``fallbacks``: models to call in this order when one of ``models`` fails. ``api_key_env``: the name of a variable,
    never the key itself. It and ``api_base`` belong to the provider ``home`` (the part of a model's name before the
    slash), or to all. ``timeout``: seconds. ``cooldown``: seconds for which a model rests after three failures in a
    row. ``parameters``: litellm's arguments of each call. ``context_tokens``: most tokens of a record that are shown;
    ``None``: by the model's window. ``concurrency``: calls at a time; ``rpm``, ``tpm``: calls and tokens per minute;
    ``daily_usd``: US dollars per day (UTC).
    """

    models: Sequence[str]
    api_base: str | None = None
    api_key_env: str | None = None
    timeout: float = 60.0
    retries: int = 2
    cooldown: float = 30.0
    fallbacks: Sequence[str] = ()
    home: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    context_tokens: int | None = None
    concurrency: int = 8
    rpm: int | None = None
    tpm: int | None = None
    daily_usd: float | None = None
