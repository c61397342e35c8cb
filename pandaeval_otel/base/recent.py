"""Caches readings of recurring texts, which each model call repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Read = TypeVar("_Read")

KEPT = 16
MAX_CHARS = 128 << 10
"""Maximum length of a cached text. A reading takes several times the memory of its text."""
LISTS_KEPT = 32
"""Maximum number of cached growing conversations."""


class Recent(Generic[_Read]):
    """Calls ``read`` and caches the last reading per text length. Callers must not change readings. Thread-safe."""

    def __init__(self, read: Callable[[str], _Read]) -> None:
        self._read = read
        self._new: dict[int, tuple[str, _Read]] = {}
        self._old: dict[int, tuple[str, _Read]] = {}

    def __call__(self, text: str) -> _Read:
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
    """Caches readings of growing lists, such as conversations."""

    def __init__(self) -> None:
        self._known: tuple[tuple[str, _Read], ...] = ()

    def keep(self, text: str, found: _Read) -> None:
        if text.endswith("]") and len(text) <= MAX_CHARS:
            self._known = ((text[:-1], found), *self._known[: LISTS_KEPT - 1])

    def split(self, text: str) -> tuple[_Read, str] | None:
        for beginning, found in self._known if len(text) <= MAX_CHARS else ():
            if text.startswith(beginning):
                rest = text[len(beginning) :].lstrip()
                if rest.startswith(","):
                    return (found, f"[{rest[1:]}")
                return None
        return None
