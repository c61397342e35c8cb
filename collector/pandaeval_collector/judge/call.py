"""One call of a model, its answer, and the ways in which it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol


class Failure(StrEnum):
    """What kept a call from being answered, after the retries that one call gets."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    COOLDOWN = "cooldown"
    """Not even tried: the provider failed too often just now."""
    UNAVAILABLE = "unavailable"
    DENIED = "denied"
    """Key, permission or model name: trying again helps once somebody has put it right."""
    REFUSED = "refused"
    """This prompt will never be answered: too long, or against the provider's policy."""
    CRASHED = "crashed"
    """The worker died while it had the call."""


class CallFailedError(Exception):
    """``retry_after``: seconds that the provider asked to wait, if it did; ``answered``: it gave an answer that nobody
    could read, and may bill for it."""

    def __init__(
        self, failure: Failure, message: str, retry_after: float | None = None, answered: bool = False
    ) -> None:
        super().__init__(message)
        self.failure, self.retry_after, self.answered = failure, retry_after, answered


class OverBudgetError(Exception):
    """What the day may cost does not suffice for this call."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked. ``response_format``: as OpenAI spells it; dropped where a provider does not know it."""

    model: str
    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    response_format: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is cut where no verdict could be that long; tokens and ``cost_usd`` are the provider's word where it can
    be true, else an estimate, and the cost is 0 for models without a known price; ``seconds``: how long the provider
    took, retries included; ``model``: who answered, which may be a fallback."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    retries: int = 0
    seconds: float = 0.0
    model: str = ""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


Permit = Callable[[str, bool], Awaitable[None]]
"""Awaited before each try of a call, retries and fallbacks included, with the model that would be asked, and whether
the try before it was answered with something that nobody could read. What it raises ends the call, and nothing is
sent."""


class Caller(Protocol):
    """Something that answers calls. On one event loop."""

    async def complete(self, call: Call) -> Answer:
        """Raises :class:`CallFailedError` or :class:`OverBudgetError`."""
        ...
