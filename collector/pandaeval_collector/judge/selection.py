"""Selects traces for judging with known probabilities, for unbiased rates."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_otel.base.semconv import AGENT_NAME


def included(id_: str, share: float) -> bool:
    """Return whether a session or trace is in a sample of this share, 0..1, by hash. Samples are nested."""
    if share >= 1.0:
        return True
    digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"judge sample").digest()
    return int.from_bytes(digest, "big") < share * 2.0**64


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether a metric's judge is called.

    ``probability``: 0..1. ``selected``: excluded from rates.
    """

    included: bool = True
    probability: float = 1.0
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of traces.

    ``share``: of whole sessions, 0..1. ``only``: required values by attribute.
    """

    share: float = 1.0
    only: Mapping[str, Collection[str]] = field(default_factory=dict)

    def concerns(self, agent: str, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether a trace of ``agent`` may be judged. ``attributes``: of spans and resources."""
        missing = {key for key, values in self.only.items() if key != AGENT_NAME or agent not in values}
        for some in attributes:
            if not missing:
                break
            missing -= {key for key in missing if key in some and _text(some[key]) in self.only[key]}
        return not missing

    def choose(self, id_: str) -> Choice:
        """Choose whether to judge a session, or a trace without a session (``id_``)."""
        return Choice(included(id_, self.share), self.share)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
