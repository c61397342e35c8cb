"""How a model is asked, beside what it is asked: the parameters of its calls, and how long its answers may get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pandaeval_collector.base.section.types import ReplyFormat

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
"""What an answer gets that was cut: so many times what it had, and so many tokens more."""


@dataclass(frozen=True, slots=True)
class CallParameters:
    """``max_tokens``: of an answer, hidden reasoning included; ``None``: what the question needs, and room for hidden
    reasoning where the model is known to reason. ``reasoning_effort``: as litellm spells it; ``None``: as the provider
    likes. ``response_format``: what the provider is held to, if it can be: any JSON object, the schema of the question,
    or nothing. ``context_tokens``: most of a record that is shown; ``None``: by the model's window. ``extra``: further
    parameters, as litellm spells them; ``None`` as a value takes one of ours away."""

    max_tokens: int | None = None
    reasoning_effort: str | None = None
    response_format: ReplyFormat = "json"
    context_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """What of it may change an answer, as a text; ``""`` where nothing is set. The room of an answer changes none,
        and what is shown of a record is told by its digest."""
        held = asdict(self)
        told = {name: held[name] for name in ("reasoning_effort", "extra") if held[name]}
        return json.dumps(told, sort_keys=True, default=str) if told else ""


def room(asked: int, parameters: CallParameters, reasons: bool, most: int | None, more: bool = False) -> int:
    """The tokens that an answer may take. ``asked``: what the question needs; ``reasons``: the model is known to think
    before it answers; ``most``: what the model can give at all, where that is known; ``more``: the answer before was
    cut."""
    wanted = parameters.max_tokens
    if wanted is None:
        effort = parameters.reasoning_effort
        hidden = HIDDEN if reasons else 0
        wanted = asked + (hidden if effort is None else _HIDDEN.get(effort, HIDDEN))
    if more:
        wanted = wanted * _MORE_TIMES + _MORE
    return wanted if most is None else max(1, min(wanted, most))
