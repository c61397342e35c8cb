"""One call of a model, its answer, and the ways in which it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol


class CallFailure(StrEnum):
    """What kept a call from being answered, after the retries that one call gets."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    COOLDOWN = "cooldown"
    """Not even tried: the provider failed too often just now."""
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
    """``retry_after``: seconds that the provider asked to wait, if it did; ``answered``: it gave an answer that nobody
    could read, and may bill for it."""

    def __init__(
        self, failure: CallFailure, message: str, retry_after: float | None = None, answered: bool = False
    ) -> None:
        super().__init__(message)
        self.failure, self.retry_after, self.answered = failure, retry_after, answered


class OverBudgetError(Exception):
    """What the day may cost does not suffice for this call."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What is asked. ``max_tokens``: what the answer itself needs; room for hidden reasoning is added for models that
    reason. ``response_format``: the schema of the answer, as OpenAI spells it; ``held``: the provider is to hold the
    model to it if it can, and else to any JSON object, which is the same in all calls. ``more``: the answer before was
    cut, and gets more room."""

    model: str
    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    response_format: Mapping[str, Any] | None = None
    held: bool = False
    more: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """``text`` is cut where no verdict could be that long; tokens and ``cost_usd`` are the provider's word where it can
    be true, else an estimate, and the cost is 0 for models without a known price; ``cached_tokens``: those of
    ``prompt_tokens`` that came from the provider's cache; ``completion_tokens``: hidden reasoning included;
    ``seconds``: how long the provider took, retries included; ``model``: who answered, which may be a fallback;
    ``cut``: the answer ended at its limit of tokens and is none; ``max_tokens``: that limit."""

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
        """Asks the model. Raises :class:`CallFailedError` or :class:`OverBudgetError`."""
        ...
