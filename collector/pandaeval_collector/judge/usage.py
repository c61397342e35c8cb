"""Counts the cost of an answer: as the provider states it, if that is plausible, else the amount reserved for it.

A provider, or a proxy before it, may leave its usage out or state anything. A negative count would refill the day's
budget, and an enormous count would end it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pandaeval_collector.judge.call import ModelCall
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.judge.shorten import tokens

_FEWEST = 10
"""A stated count below a tenth of ours is not believed: our count is rarely twice the true one."""
_OVERHEAD = 4000
"""Tokens that a provider may add to what was sent: its template, and how it words a schema."""
_MOST_OUT = 10
"""Times ``max_tokens``, the largest believable count: some providers count thinking beyond that limit."""
_CHEAPEST, _DEAREST = 0.01, 10.0
"""Parts of the list price that a call may cost: cached prompts are cheaper, tiers of service dearer."""
_DEAREST_TOKEN = 0.01
"""US dollars, where there is no list price: ten times what the dearest models take."""


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Tokens and US dollars of one answer. ``stated``: the provider stated at least the tokens; else all is estimated.
    ``cached_tokens``: of the prompt's; the provider's word only."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    stated: bool = True
    cached_tokens: int = 0


def estimated(call: ModelCall, price: Price) -> AnswerUsage:
    """Estimates the most that an answer to a call can cost, which is reserved for it."""
    sent = sum(tokens(message["content"]) for message in call.messages)
    return AnswerUsage(sent, call.max_tokens, sent * price.into + call.max_tokens * price.out, stated=False)


def believed(stated: Mapping[str, Any], call: ModelCall, text: str, price: Price) -> AnswerUsage:
    """Returns the usage of an answer. ``stated``: its ``prompt_tokens``, ``completion_tokens``, ``cached_tokens`` and
    ``cost_usd`` as the provider gave them, each of any type or missing; ``text``: of the answer. An implausible count
    of tokens replaces both counts by the estimate; an implausible cost becomes the list price, with cached tokens at
    their own price; an implausible count of cached tokens becomes 0."""
    estimate = estimated(call, price)
    # No tokenizer makes two tokens of one byte.
    shape = json.dumps(call.response_format) if call.response_format else ""  # sent or not
    most_in = sum(len(each["content"].encode(errors="replace")) for each in call.messages) + len(shape) + _OVERHEAD
    prompt, completion = stated.get("prompt_tokens"), stated.get("completion_tokens")
    if not _is_count(prompt, max(1, estimate.prompt_tokens // _FEWEST), most_in):
        return estimate
    if not _is_count(completion, max(1, tokens(text) // _FEWEST) if text else 0, _MOST_OUT * call.max_tokens):
        return estimate
    said = stated.get("cached_tokens")
    cached = said if _is_count(said, 0, prompt) else 0
    listed = (prompt - cached) * price.into + cached * price.cached + completion * price.out
    least, most = _CHEAPEST * listed, _DEAREST * listed if listed else _DEAREST_TOKEN * (prompt + completion)
    cost: Any = stated.get("cost_usd")
    if type(cost) not in (int, float) or not math.isfinite(cost) or not least <= cost <= most:
        cost = listed
    return AnswerUsage(prompt, completion, float(cost), cached_tokens=cached)


def _is_count(value: Any, least: int, most: int) -> TypeGuard[int]:
    return type(value) is int and least <= value <= most
