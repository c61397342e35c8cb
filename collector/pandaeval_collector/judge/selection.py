"""Which traces are judged when not all are, and with what chance: what makes rates over them come out right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


def included(id_: str, share: float) -> bool:
    """Returns whether a session (or a trace without one) is in a sample of this share, 0..1, by a hash: a larger sample
    holds every smaller one, and all collectors and runs pick the same ones."""
    if share >= 1.0:
        return True
    digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"judge sample").digest()
    return int.from_bytes(digest, "big") < share * 2.0**64


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether a metric's judge is asked about a trace. ``probability``: the chance of that, 0..1, for such a trace.
    ``in_sample``: its whole session is judged, so that the trace's result counts for the session."""

    included: bool = True
    probability: float = 1.0
    in_sample: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """Which traces are judged. ``share``: of the sessions, 0..1, each whole or not at all; ``shares``: by metric key.

    ``when``: with ``suspicious`` every trace that looks suspicious is judged, and the share is of the others.
    ``agents``, ``services``, ``attributes``: no other traces are judged; empty: all. An attribute may be that of any
    span or of its resource."""

    share: float = 1.0
    shares: Mapping[str, float] = field(default_factory=dict)
    when: Literal["always", "suspicious"] = "always"
    agents: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)

    def concerns(self, agent: str, service: str, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Returns whether traces like this one are judged at all. ``attributes``: of its spans and their resources."""
        if (self.agents and agent not in self.agents) or (self.services and service not in self.services):
            return False
        if not self.attributes:
            return True
        values = ((key, some[key]) for some in attributes for key in self.attributes if key in some)
        # As a configuration writes them.
        held = {(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in values}
        return held >= set(self.attributes.items())

    def choose(self, key: str, id_: str, suspicious: bool) -> Choice:
        """Chooses whether to judge a metric (``key``) of a session, or of a trace without one (``id_``)."""
        share = self.shares.get(key, self.share)
        in_sample = included(id_, share)
        if suspicious and self.when == "suspicious":
            return Choice(True, 1.0, in_sample)
        return Choice(in_sample, share, in_sample)
