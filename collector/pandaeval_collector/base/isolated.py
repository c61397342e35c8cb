"""Fault isolation: process items together, then individually if that fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Isolated(Iterator[Sequence[T]], Generic[T]):
    """Yields all items as one part. After :meth:`split`, yields each item of that part alone::

    parts = Isolated(items)
    for part in parts:
        try:
            work(part)
        except Exception as error:
            if not parts.split():
                failed(part[0], error)
    """

    def __init__(self, items: Sequence[T]) -> None:
        self._waiting = deque([items])
        self._part: Sequence[T] = ()

    def __next__(self) -> Sequence[T]:
        if not self._waiting:
            raise StopIteration
        self._part = self._waiting.popleft()
        return self._part

    def split(self) -> bool:
        """Queue each item of the last part alone. Returns ``False`` for a single item."""
        if len(self._part) < 2:
            return False
        self._waiting.extendleft([item] for item in reversed(self._part))
        return True
