"""Limits a trace to nine invalid replies of a judge."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

MOST_INVALID = 9
"""Maximum invalid replies about a trace; then questions stop."""
_REMEMBERED = 1024


@dataclass(slots=True)
class ReplyCount:
    """Replies about one trace. ``turn``: lock for repeated questions."""

    invalid: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_over(self) -> bool:
        return self.invalid >= MOST_INVALID


class ReplyCounts:
    """Counts of the latest traces, by ID. For a single event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, ReplyCount] = OrderedDict()

    def of(self, about: str) -> ReplyCount:
        """Return a trace's count; a new count for ``""``."""
        count = self._known.pop(about, None) or ReplyCount()
        if about:
            self._known[about] = count
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return count
