"""What was read last, for texts that come again: a run states its tools, its instructions and what was asked with every
model call, and every span around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Read = TypeVar("_Read")

KEPT = 8
MAX_CHARS = 256 << 10
"""A longer text is not kept: its reading takes several times its length."""


class Recent(Generic[_Read]):
    """``read``, not done again for one of the last :data:`KEPT` texts. What it returns is shared: nobody may change it.

    Texts are compared, which costs far less than to hash them. Safe on any thread: two may read the same text.
    """

    def __init__(self, read: Callable[[str], _Read]) -> None:
        self._read = read
        self._known: tuple[tuple[str, _Read], ...] = ()

    def __call__(self, text: str) -> _Read:
        """What ``read`` makes of ``text``."""
        for known, found in self._known:
            if known == text:
                return found
        found = self._read(text)
        if len(text) <= MAX_CHARS:
            self._known = ((text, found), *self._known[: KEPT - 1])
        return found


class Grown(Generic[_Read]):
    """What was read of the last lists, for texts that are one of them with more at the end: a conversation, as every
    model call repeats it."""

    def __init__(self) -> None:
        self._known: tuple[tuple[str, _Read], ...] = ()

    def keep(self, text: str, found: _Read) -> None:
        """``found`` is what the JSON array in ``text`` holds, item by item."""
        if text.endswith("]") and len(text) <= MAX_CHARS:
            self._known = ((text[:-1], found), *self._known[: KEPT - 1])

    def split(self, text: str) -> tuple[_Read, str] | None:
        """What the beginning of ``text`` holds, and the rest of it as an array of its own; ``None`` if it begins like
        none of the last lists."""
        for beginning, found in self._known if len(text) <= MAX_CHARS else ():
            if text.startswith(beginning):
                rest = text[len(beginning) :].lstrip()
                return (found, f"[{rest[1:]}") if rest.startswith(",") else None
        return None
