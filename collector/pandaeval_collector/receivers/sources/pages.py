"""Pages of an API that has none: it gives so many of what lies in a time, and does not say where to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def newest_first(
    since: int, until: int, least: int, ask: Callable[[int, int], tuple[T, bool]]
) -> Iterator[tuple[T, bool]]:
    """Everything from ``since`` up to ``until``, a window at a time from the end. ``ask`` gives what lies in a window,
    and whether it holds all of it; of one that does not hold all the later half is asked for instead, down to
    ``least``, below which what came is given as it is, with ``False``. What lies on the border of two windows may come
    twice."""
    end, width = until, until - since
    while end > since:
        begin = max(since, end - width)
        found, whole = ask(begin, end)
        if not whole and end - begin > least:
            width = max(least, (end - begin) // 2)
            continue
        yield found, whole
        end, width = begin, width * 2
