"""From litellm's response to the worker's reply: the words, what they took, and whether they are a whole answer."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.judge.failures import Reply, failed

MAX_TEXT = 65_000
"""No verdict is longer; what is behind is not passed on."""
_LONGEST_COUNT = 20
_CUT, _NATIVE = "length", "native_finish_reason"
_REFUSED = frozenset({"content_filter", "safety", "refusal", "recitation"})
"""Reasons for which an answer ended that make it none, by OpenAI's names and others that pass through litellm."""


def answered(response: Any, model: str, max_tokens: int) -> Reply:
    """The reply that a response makes. ``cut``: it ended at its limit of tokens, whatever it holds. An answer that the
    provider or the model itself broke off, or refused to give, is a failure even where its words look like a verdict.
    """
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
    """What of a provider's own fields litellm passes on beside those that all have."""
    return (getattr(part, "provider_specific_fields", None) or {}).get(name)


def _usage(response: Any) -> dict[str, Any]:
    """Tokens and US dollars as the provider reports them; ``None`` for what is no number."""
    usage = getattr(response, "usage", None)
    about = getattr(usage, "prompt_tokens_details", None)
    hidden = getattr(usage, "completion_tokens_details", None)
    stated = {
        "prompt_tokens": getattr(usage, "prompt_tokens", None),
        "completion_tokens": getattr(usage, "completion_tokens", None),
        "cached_tokens": getattr(about, "cached_tokens", None),
        "reasoning_tokens": getattr(hidden, "reasoning_tokens", None),
        "cost_usd": (getattr(response, "_hidden_params", None) or {}).get("response_cost"),
    }
    return {name: _number(value) for name, value in stated.items()}


def _number(value: Any) -> int | float | None:
    """Some servers write counts as text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < _LONGEST_COUNT:
        return int(value)
    return value if isinstance(value, int | float) else None
