"""What was read last, for texts that come again: a run states its tools, its instructions and what was asked with every
model call, and every span around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Read = TypeVar("_Read")

KEPT = 16
MAX_CHARS = 128 << 10
"""A longer text is not kept: its reading takes several times its length."""
LISTS_KEPT = 8
"""Conversations whose growth is followed."""


class Recent(Generic[_Read]):
    """``read``, seldom done again for one of the last texts: of each length the last one is known, for at least
    :data:`KEPT` and at most twice as many lengths. What it returns is shared: nobody may change it.

    A text is found by its length and then compared, which costs far less than to hash it. Safe on any thread: two may
    read the same text.
    """

    def __init__(self, read: Callable[[str], _Read]) -> None:
        self._read = read
        self._new: dict[int, tuple[str, _Read]] = {}
        self._old: dict[int, tuple[str, _Read]] = {}

    def __call__(self, text: str) -> _Read:
        """What ``read`` makes of ``text``."""
        size = len(text)
        known = self._new.get(size) or self._old.get(size)
        if known is not None and known[0] == text:
            return known[1]
        found = self._read(text)
        if size <= MAX_CHARS:
            if len(self._new) >= KEPT:
                self._old, self._new = self._new, {}
            self._new[size] = (text, found)
        return found


class GrowingList(Generic[_Read]):
    """What was read of the last lists, for texts that are one of them with more at the end: a conversation, as every
    model call repeats it."""

    def __init__(self) -> None:
        self._known: tuple[tuple[str, _Read], ...] = ()

    def keep(self, text: str, found: _Read) -> None:
        """``found`` is what the JSON array in ``text`` holds, item by item."""
        if text.endswith("]") and len(text) <= MAX_CHARS:
            self._known = ((text[:-1], found), *self._known[: LISTS_KEPT - 1])

    def split(self, text: str) -> tuple[_Read, str] | None:
        """What the beginning of ``text`` holds, and the rest of it as an array of its own; ``None`` if it begins like
        none of the last lists."""
        for beginning, found in self._known if len(text) <= MAX_CHARS else ():
            if text.startswith(beginning):
                rest = text[len(beginning) :].lstrip()
                return (found, f"[{rest[1:]}") if rest.startswith(",") else None
        return None
