"""Turns litellm's responses and exceptions into replies as JSON objects. For the worker's process alone."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import httpx

from pandaeval_collector.base.untrusted.foreign import explained

Reply = dict[str, Any]
"""The worker's report of a call, as a JSON object."""

_TOO_LONG = re.compile(
    "context[ _]length|context (?:window|size)|maximum context|(?:prompt|input) is too long|too many tokens|"
    "exceeds the available context"
)
"""Words by which providers say that a prompt is longer than the model's window."""
_LONGEST_ASKED_S = 900.0
MAX_TEXT = 65_000
"""No verdict is longer; what is behind is not passed on."""
_LONGEST_COUNT = 20
_CUT, _NATIVE = "length", "native_finish_reason"
_REFUSED = frozenset({"content_filter", "safety", "refusal", "recitation"})
"""Reasons for which an answer ended that make it none, by OpenAI's names and others that pass through litellm."""


def failed(kind: str, message: str, retry_after: float | None = None, answered: bool = False) -> Reply:
    """Makes the reply of a failed call. ``kind``: a :class:`pandaeval_collector.judge.call.CallFailure`; ``answered``:
    the provider sent something unreadable, and may bill for it."""
    return {"ok": False, "failure": kind, "message": message, "retry_after": retry_after, "answered": answered}


def failure_of(litellm: Any, error: Exception, secrets: tuple[str, ...]) -> Reply:
    """Turns an exception of litellm into a failed reply, whose message contains none of ``secrets``."""
    said, message = str(error).lower(), explained(error, secrets)
    # Some servers have error classes of their own for a prompt that is too long.
    of_request = isinstance(error, litellm.BadRequestError | litellm.APIError | litellm.InternalServerError)
    if isinstance(error, litellm.ContextWindowExceededError) or (of_request and _TOO_LONG.search(said)):
        return failed("too_long", message)
    # litellm itself found that nobody can be asked; by its class the error may be a server's.
    if "missing credentials" in said or "llm provider not provided" in said:
        return failed("denied", message)
    kinds: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
        ("timeout", (litellm.Timeout,)),
        ("denied", (litellm.AuthenticationError, litellm.PermissionDeniedError, litellm.NotFoundError)),
        ("refused", (litellm.ContentPolicyViolationError, litellm.BadRequestError)),
        ("rate_limit", (litellm.RateLimitError,)),
    )
    kind = next((kind for kind, types in kinds if isinstance(error, types)), "unavailable")
    headers, wait = getattr(getattr(error, "response", None), "headers", None) or {}, None
    with contextlib.suppress(KeyError, ValueError):
        wait = min(_LONGEST_ASKED_S, max(0.0, float(headers["retry-after"])))
    return failed(kind, message, wait, unreadable(error))


def unreadable(error: BaseException | None) -> bool:
    """Returns whether a try failed over the content of the answer: no network error, no status code."""
    link = error
    while link is not None:
        if isinstance(link, OSError | httpx.HTTPError):
            return False
        if isinstance(link, ArithmeticError | AttributeError | LookupError | TypeError | ValueError):
            return True
        link = link.__cause__ or link.__context__
    return False


def answered(response: Any, model: str, max_tokens: int) -> Reply:
    """Turns litellm's response into a reply. ``cut``: it ended at its limit of tokens. An answer that the provider or
    the model broke off or refused is a failure, even where its words look like a verdict."""
    choice = response.choices[0] if response.choices else None
    message = getattr(choice, "message", None)
    reasons = {str(each).lower() for each in (getattr(choice, "finish_reason", None), _own(choice, _NATIVE)) if each}
    if reasons & _REFUSED or _own(message, "refusal"):
        return failed("refused", "the model or its provider refused to answer", answered=True)
    if "error" in reasons:
        return failed("unavailable", "the provider broke the answer off", answered=True)
    text = getattr(message, "content", None)
    return {
        "ok": True,
        "text": text[:MAX_TEXT] if isinstance(text, str) else "",
        "cut": _CUT in reasons,
        "usage": _usage(response),
        "max_tokens": max_tokens,
        "model": model,
    }


def _own(part: Any, name: str) -> Any:
    """Returns a field of the provider's own that litellm passes on."""
    return (getattr(part, "provider_specific_fields", None) or {}).get(name)


def _usage(response: Any) -> dict[str, Any]:
    """Returns tokens and US dollars as the provider reports them; ``None`` for what is no number, also as a text."""
    usage = getattr(response, "usage", None)
    stated = {
        "prompt_tokens": getattr(usage, "prompt_tokens", None),
        "completion_tokens": getattr(usage, "completion_tokens", None),
        "cached_tokens": getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None),
        "reasoning_tokens": getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None),
        "cost_usd": (getattr(response, "_hidden_params", None) or {}).get("response_cost"),
    }
    for name, value in stated.items():
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < _LONGEST_COUNT:
            stated[name] = int(value)
        elif not isinstance(value, int | float):
            stated[name] = None
    return stated
