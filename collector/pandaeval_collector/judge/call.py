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
"""Tokens that a reasoning model may think before it answers, where nobody says how hard it is to think. No answer is
charged for what it does not use."""
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
    """One call of a model. ``max_tokens``: what the answer itself needs; room for hidden reasoning is added for models
    that reason. ``response_format``: the schema of the answer, as OpenAI spells it; ``held``: the provider is to
    enforce that schema if it can, else any JSON object, as in all calls. ``more``: the previous answer was cut, and
    gets more room; ``cache_key``: names the agent to providers that cache prompts by key."""

    model: str
    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    response_format: Mapping[str, Any] | None = None
    held: bool = False
    more: bool = False
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer. ``text`` is cut beyond the length of any verdict; tokens and ``cost_usd`` are the provider's if
    they are plausible, else an estimate, and the cost is 0 for models without a known price; ``cached_tokens``: those
    of ``prompt_tokens`` that came from the provider's cache; ``completion_tokens``: hidden reasoning included;
    ``seconds``: how long the provider took, retries included; ``model``: who answered, maybe a fallback; ``cut``: the
    answer ended at its limit of tokens and is no verdict; ``max_tokens``: that limit."""

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
"""Awaited before each try of a call, retries and fallbacks included, with the model that would be asked, whether the
try before it was answered with something that nobody could read, and how many tokens the answer may take. What it
raises ends the call, and nothing is sent."""


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
