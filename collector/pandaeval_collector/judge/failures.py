"""From an exception of litellm's, or an answer that is none, to the failure of a call. For the worker's process."""

from __future__ import annotations

from typing import Any

import httpx

from pandaeval_collector.base.untrusted.foreign import explained

Reply = dict[str, Any]
"""The worker's report of a call, as a JSON object."""

_TOO_LONG = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "exceeds the available context",
)
"""Words by which providers say that a prompt is longer than the model's window."""
_LONGEST_PAUSE_S = 900.0


def failed(kind: str, message: str, retry_after: float | None = None, answered: bool = False) -> Reply:
    """``kind``: of :class:`pandaeval_collector.judge.call.Failure`; ``answered``: the provider gave something that
    nobody could read, and may bill for it."""
    return {"ok": False, "failure": kind, "message": message, "retry_after": retry_after, "answered": answered}


def failure_of(litellm: Any, error: Exception, secrets: tuple[str, ...]) -> Reply:
    """The failure that an exception of litellm's means, told without ``secrets``."""
    message = explained(error, secrets)
    if is_too_long(litellm, error):
        return failed("too_long", message)
    if was_not_asked(error):
        return failed("denied", message)
    kinds: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
        ("timeout", (litellm.Timeout,)),
        ("denied", (litellm.AuthenticationError, litellm.PermissionDeniedError, litellm.NotFoundError)),
        ("refused", (litellm.ContentPolicyViolationError, litellm.BadRequestError)),
        ("rate_limit", (litellm.RateLimitError,)),
    )
    kind = next((kind for kind, types in kinds if isinstance(error, types)), "unavailable")
    return failed(kind, message, _retry_after(error), unreadable(error))


def was_not_asked(error: Exception) -> bool:
    """Whether litellm found out by itself that nobody can be asked; by class it may be a server's error."""
    said = str(error).lower()
    return "missing credentials" in said or "llm provider not provided" in said


def is_too_long(litellm: Any, error: Exception) -> bool:
    """Whether the prompt is longer than the model takes: some servers say it with a class of errors of their own."""
    if isinstance(error, litellm.ContextWindowExceededError):
        return True
    of_request = isinstance(error, litellm.BadRequestError | litellm.APIError | litellm.InternalServerError)
    said = str(error).lower()
    return of_request and any(words in said for words in _TOO_LONG)


def unreadable(error: BaseException | None) -> bool:
    """Whether a try failed over what the provider answered: nothing went wrong on the way, and no status says so."""
    link = error
    while link is not None:
        if isinstance(link, OSError | httpx.HTTPError):
            return False
        if isinstance(link, ArithmeticError | AttributeError | LookupError | TypeError | ValueError):
            return True
        link = link.__cause__ or link.__context__
    return False


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(_LONGEST_PAUSE_S, max(0.0, float(headers["retry-after"])))
    except (KeyError, ValueError):
        return None
