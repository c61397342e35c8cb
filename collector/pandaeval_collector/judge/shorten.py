"""Estimates a text's tokens and shortens it."""

from __future__ import annotations

from collections.abc import Callable, Collection

_MARK = 60
"""Minimum characters; a shorter text would be shorter than the note about the cut."""
_NEAR, _LEAST_NEAR, _MOST_NAMES = 120, 20, 40
"""Maximum and minimum characters on each side of a kept name, and maximum kept names of a text."""


def elided(text: str, limit: int, names: Collection[str] = ()) -> str:
    """Shorten a text to beginning and end, about ``limit`` characters. ``names``: words to keep."""
    if len(text) <= limit:
        return text
    head = max(1, limit * 2 // 3)
    tail = max(1, limit - head)
    note = f"{len(text) - head - tail} of {len(text)} characters cut"
    if not names:
        return f"{text[:head]} […{note}…] {text[-tail:]}"
    near = max(_LEAST_NEAR, min(_NEAR, limit // (2 * len(names))))
    shown, end = [text[:head]], head
    for at in sorted(text.find(name) for name in names)[:_MOST_NAMES]:
        if head <= at < len(text) - tail and at + near > end:
            shown += [*([" […] "] if at - near > end else []), text[max(end, at - near) : at + near]]
            end = at + near
    return "".join([*shown, f" […{note}, but for these parts…] ", text[max(end, len(text) - tail) :]])


def fitting(text: str, most: int) -> str:
    """Shorten a text to beginning and end, at most ``most`` tokens."""
    if tokens(text) <= most:
        return text
    low = _longest(lambda length: elided(text, length), len(text), most)
    return elided(text, low) if low > _MARK else text[: _longest(lambda length: text[:length], len(text), most)]


def _longest(cut: Callable[[int], str], length: int, most: int) -> int:
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens(cut(middle)) <= most else (low, middle - 1)
    return low


def tokens(text: str) -> int:
    """Estimate tokens, rather high: a quarter of ASCII characters, and one per other character."""
    plain = len(text.encode("ascii", "ignore"))
    return plain // 4 + (len(text) - plain) + 1
