"""How the judge's process reaches its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class JudgeProcessSetup:
    """The settings of the judge's process.

    ``fallbacks``: models to call in this order when one of ``models`` fails. ``api_key_env``: the name of a variable,
    never the key itself. It and ``api_base`` belong to the provider ``home`` (the part of a model's name before the
    slash), or to all. ``timeout``: seconds. ``cooldown``: seconds for which a model rests after three failures in a
    row. ``parameters``: litellm's arguments of each call. ``context_tokens``: most tokens of a record that are shown;
    ``None``: by the model's window.
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
