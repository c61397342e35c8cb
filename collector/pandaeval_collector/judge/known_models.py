"""Facts about models from litellm's list: prices, windows, reasoning."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

MOST_RECORD, USUAL_RECORD, LEAST_RECORD, SMALLER_RECORD = 32_000, 12_000, 400, 6_000
"""Limits of a record in tokens: for a large window, for a smaller or unknown window, the least, and the limit after a
model refused a record as too long."""
_LARGE_WINDOW = 128_000
_QUESTION = 1_500
"""Tokens of the prompt without the record: system message, question, and form of the answer."""
_ELSEWHERE = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""Variables that replace OpenAI's server."""
_SURE = 0.75
"""Used share of a window. Our token count is an estimate, and texts with many numbers need more tokens."""


class Price(NamedTuple):
    """US dollars per token of prompts, answers and cached prompts."""

    into: float = 0.0
    out: float = 0.0
    cached: float = 0.0


FREE = Price()


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Facts about a model, ``None`` if unknown.

    ``window``: tokens of prompt and answer. ``most_out``: of an answer. ``reasons``: may think first. ``marks``: only
    marked prefixes are cached. ``keyed``: cache keys are used.
    """

    price: Price | None = None
    window: int | None = None
    most_out: int | None = None
    reasons: bool = False
    marks: bool = False
    keyed: bool = False


def known(litellm: Any, model: str) -> KnownModel:
    try:
        info = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001 - litellm raises a bare Exception for unknown models
        return KnownModel()
    into, out = float(info.get("input_cost_per_token") or 0), float(info.get("output_cost_per_token") or 0)
    cached = info.get("cache_read_input_token_cost")
    return KnownModel(
        Price(into, out, into if cached is None else float(cached)),
        _count(info.get("max_input_tokens")),
        _count(info.get("max_output_tokens")),
        bool(info.get("supports_reasoning")),
        "claude" in model.lower() and bool(info.get("supports_prompt_caching")),
        info.get("litellm_provider") == "openai" and not any(map(os.environ.get, _ELSEWHERE)),
    )


def record_budget(window: int | None, reply: int) -> int:
    """Return a record's token limit: up to 32,000 for windows from 128,000, else up to 12,000.

    In small windows, three quarters of the rest, but at least 400. ``reply``: tokens of the answer.
    """
    if window is None:
        return USUAL_RECORD
    most = MOST_RECORD if window >= _LARGE_WINDOW else USUAL_RECORD
    return max(LEAST_RECORD, min(most, int(_SURE * (window - reply - _QUESTION))))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None
