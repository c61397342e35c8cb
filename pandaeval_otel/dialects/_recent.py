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
