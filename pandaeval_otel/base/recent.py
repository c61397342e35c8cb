"""Remembers readings of texts that recur: a run repeats its tools, its instructions and its question with every model
call and on every span around it, and each of its calls begins with the conversation of the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Read = TypeVar("_Read")

KEPT = 16
MAX_CHARS = 128 << 10
"""Longer texts are not kept: a reading takes several times the memory of its text."""
LISTS_KEPT = 32
"""How many growing conversations are remembered."""


class Recent(Generic[_Read]):
    """Calls ``read`` and remembers the reading of the last text of each length, for at least :data:`KEPT` and at most
    twice as many lengths since it was asked for. Callers share what it returns and must not change it.

    It finds a text by its length and then compares, which costs far less than hashing. Safe on any thread: two may read
    the same text.
    """

    def __init__(self, read: Callable[[str], _Read]) -> None:
        self._read = read
        self._new: dict[int, tuple[str, _Read]] = {}
        self._old: dict[int, tuple[str, _Read]] = {}

    def __call__(self, text: str) -> _Read:
        """Return what ``read`` makes of ``text``."""
        size = len(text)
        known = self._new.get(size)
        if known is not None and known[0] == text:
            return known[1]
        known = self._old.get(size)
        if known is None or known[0] != text:
            known = (text, self._read(text))
        if size <= MAX_CHARS:
            if len(self._new) >= KEPT:
                self._old, self._new = self._new, {}
            self._new[size] = known
        return known[1]


class GrowingList(Generic[_Read]):
    """Remembers the readings of the last lists, for texts that append items to one of them, as a conversation that
    every model call repeats."""

    def __init__(self) -> None:
        self._known: tuple[tuple[str, _Read], ...] = ()

    def keep(self, text: str, found: _Read) -> None:
        """Remember ``found`` as the items of the JSON array in ``text``."""
        if text.endswith("]") and len(text) <= MAX_CHARS:
            self._known = ((text[:-1], found), *self._known[: LISTS_KEPT - 1])

    def split(self, text: str) -> tuple[_Read, str] | None:
        """Return the reading of the list that ``text`` begins with, and the rest of it as an array of its own;
        ``None`` if it begins like none of the last lists."""
        for beginning, found in self._known if len(text) <= MAX_CHARS else ():
            if text.startswith(beginning):
                rest = text[len(beginning) :].lstrip()
                if rest.startswith(","):
                    return (found, f"[{rest[1:]}")
                return None
        return None
