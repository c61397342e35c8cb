"""Limits trials of a judge that cannot follow the format: at most nine invalid replies about a trace."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

MOST_INVALID = 9
"""Maximum invalid replies about a trace; then questions stop."""
_REMEMBERED = 1024


@dataclass(slots=True)
class ReplyCount:
    """The replies about one trace. ``turn``: questions that are repeated alone wait for each other."""

    invalid: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_over(self) -> bool:
        return self.invalid >= MOST_INVALID


class ReplyCounts:
    """The trials of the latest traces, by an id. For a single event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, ReplyCount] = OrderedDict()

    def of(self, about: str) -> ReplyCount:
        """Return the count of a trace; a new count for ``""``."""
        count = self._known.pop(about, None) or ReplyCount()
        if about:
            self._known[about] = count
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return count
