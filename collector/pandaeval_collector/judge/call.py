"""A model call, its answer and its failures."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

RECORDED = "file:"
"""Prefix of a ``judge.api_base`` that names a file of recorded replies."""

# Parameters of a model call, and the length of its answers.
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
    """Return the token limit of an answer.

    ``reasons``: the model thinks first. ``most``: the model's limit. ``more``: the previous answer was cut.
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
    """Return the parameters that may change an answer, as text. Excludes answer limit and enforced format."""
    held = {name: value for name, value in parameters.items() if name not in ("max_tokens", "response_format")}
    return json.dumps(held, sort_keys=True, default=str) if held else ""


class CallFailure(StrEnum):
    """Why a call got no answer, after its own retries."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    COOLDOWN = "cooldown"
    """Not tried, because the provider failed too often recently."""
    UNAVAILABLE = "unavailable"
    DENIED = "denied"
    """Wrong key, permission or model name. A retry helps only after a person has fixed it."""
    REFUSED = "refused"
    """The provider's policy or request format forbids this prompt, so no retry helps."""
    TOO_LONG = "too_long"
    """The prompt is longer than the model's window. A shorter record can succeed."""
    CRASHED = "crashed"
    """The worker died during the call."""


class CallFailedError(Exception):
    """A call got no answer. ``retry_after``: seconds. ``answered``: unreadable answer, may be billed."""

    def __init__(
        self, failure: CallFailure, message: str, retry_after: float | None = None, answered: bool = False
    ) -> None:
        super().__init__(message)
        self.failure, self.retry_after, self.answered = failure, retry_after, answered

    def __reduce__(self) -> Any:
        return type(self), (self.failure, str(self), self.retry_after, self.answered), self.__dict__


class OverBudgetError(Exception):
    """The rest of the day's budget is too small for this call."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call.

    ``max_tokens``: without hidden reasoning. ``response_format``: OpenAI schema, enforced if ``held``. ``more``: the
    previous answer was cut. ``cache_key``: for prompt caches.
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
    """A model's answer.

    Implausible tokens and ``cost_usd`` are replaced by estimates; cost 0 without a price. ``cached_tokens``: part of
    ``prompt_tokens``. ``completion_tokens``: with hidden reasoning. ``seconds``: with retries. ``model``: may be a
    fallback. ``cut``: ended at ``max_tokens``.
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
    """Answers calls. On one event loop."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Call the model. Raises :class:`CallFailedError` or :class:`OverBudgetError`."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """Connection and limits of a judge.

    ``fallbacks``: tried in order. ``api_key_env``: name of a variable. It and ``api_base`` apply to the provider
    ``home``, or to all. ``timeout``: seconds. ``cooldown``: seconds of rest after three consecutive failures.
    ``parameters``: litellm's arguments. ``context_tokens``: limit of a record; ``None``: by the model's window.
    ``rpm``, ``tpm``: per minute. ``daily_usd``: per UTC day.
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
