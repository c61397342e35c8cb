"""What an answer did cost: the provider's own word, where it can be true, and else what was set aside for it.

A provider, or whoever stands between it and us, may leave its usage out or state anything: a negative count would fill
the day's budget up again, an enormous one would end it. Neither is believed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pandaeval_collector.judge.call import ModelCall
from pandaeval_collector.judge.known import Price
from pandaeval_collector.judge.neutral import tokens

_FEWEST = 10
"""Fewer than a tenth of the tokens that we count in a text is no count of it: ours is rarely twice the truth."""
_OVERHEAD = 4000
"""Tokens that a provider may add to what was sent: its template, and how it words a schema."""
_MOST_OUT = 10
"""Times ``max_tokens``: thinking is counted, and not everywhere within that limit."""
_CHEAPEST, _DEAREST = 0.01, 10.0
"""Parts of the list price that a call may cost: cached prompts are cheaper, tiers of service dearer."""
_DEAREST_TOKEN = 0.01
"""US dollars, where there is no list price: ten times what the dearest models take."""


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Tokens and US dollars of one answer. ``stated``: by the provider, at least the tokens; else an estimate.
    ``cached_tokens``: of the prompt's, by the provider alone."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    stated: bool = True
    cached_tokens: int = 0


def estimated(call: ModelCall, price: Price) -> AnswerUsage:
    """The most that an answer to a call can take, as far as its length is known: what is set aside for it."""
    sent = sum(tokens(message["content"]) for message in call.messages)
    return AnswerUsage(sent, call.max_tokens, sent * price.into + call.max_tokens * price.out, stated=False)


def believed(stated: Mapping[str, Any], call: ModelCall, text: str, price: Price) -> AnswerUsage:
    """The usage of an answer. ``stated``: its ``prompt_tokens``, ``completion_tokens``, ``cached_tokens`` and
    ``cost_usd`` as the provider gave them, each of any type or missing; ``text``: of the answer. Tokens that cannot be
    true are replaced, both counts, by the estimate; a cost that cannot be true, by the list price of the tokens, with
    the cached ones at their own price; cached tokens that cannot be true, by none."""
    estimate = estimated(call, price)
    prompt, completion = stated.get("prompt_tokens"), stated.get("completion_tokens")
    if not _is_count(prompt, _fewest(estimate.prompt_tokens), _most_in(call)):
        return estimate
    if not _is_count(completion, _fewest(tokens(text)) if text else 0, _MOST_OUT * call.max_tokens):
        return estimate
    said = stated.get("cached_tokens")
    cached = said if _is_count(said, 0, prompt) else 0
    listed = (prompt - cached) * price.into + cached * price.cached + completion * price.out
    least, most = _CHEAPEST * listed, _DEAREST * listed if listed else _DEAREST_TOKEN * (prompt + completion)
    cost = stated.get("cost_usd")
    believable = float(cost) if _is_amount(cost, least, most) else listed
    return AnswerUsage(prompt, completion, believable, cached_tokens=cached)


def _most_in(call: ModelCall) -> int:
    """More tokens than this are in no tokenizer's count of the call: none makes two of one byte."""
    shape = json.dumps(call.response_format) if call.response_format else ""  # sent or not
    return sum(len(each["content"].encode(errors="replace")) for each in call.messages) + len(shape) + _OVERHEAD


def _fewest(counted: int) -> int:
    return max(1, counted // _FEWEST)


def _is_count(value: Any, least: int, most: int) -> TypeGuard[int]:
    return type(value) is int and least <= value <= most


def _is_amount(value: Any, least: float, most: float) -> TypeGuard[float]:
    return type(value) in (int, float) and math.isfinite(value) and least <= value <= most
