"""Parses JSON text into values that can be written as JSON again, with orjson if installed.

Values outside JSON (``NaN``, numbers beyond a float) stay text. Lone surrogates become U+FFFD, integers above 64 bits
floats.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_SURROGATES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


MAX_DEPTH = 64
"""Maximum nesting of containers, because readers recurse. Protobuf reads 100 nested messages, and four JSON levels of
an attribute take three.
"""
_CONTAINERS = frozenset({dict, list, tuple})


def loads(text: str) -> Any:
    """Parse ``text``. Raises :class:`ValueError` or :class:`RecursionError`."""
    try:
        return _quick(text)
    except ValueError:  # not JSON, or a word that only the slow parser knows
        return _thorough(text)


def _thorough(text: str) -> Any:
    return _decode(without_half_pairs(text))


def without_half_pairs(text: str) -> str:
    """Replace lone surrogates in JSON text by U+FFFD."""
    if "\\u" in text:
        return _SURROGATES.sub(lambda match: "\\ufffd" if len(match[0]) == 6 else match[0], text)
    return text


def too_deep(value: Any) -> bool:
    """Return whether ``value`` nests deeper than :data:`MAX_DEPTH`."""
    if type(value) not in _CONTAINERS:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        held = (container.values() if type(container) is dict else container for container in level)
        level = [item for items in held for item in items if type(item) in _CONTAINERS]
        if not level:
            return False
    return True


def _whole(digits: str) -> int | float | str:
    if len(digits) < 19 or -(2**63) <= int(digits[:30]) < 2**64:
        return int(digits)
    return _fraction(digits)


def _fraction(digits: str) -> float | str:
    number = float(digits)
    if math.isfinite(number):
        return number
    return digits


as_text = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""Write a value as JSON text, with ``str`` for types that JSON lacks. Faster than ``json.dumps``, which creates an
encoder per call.
"""

_decode = json.JSONDecoder(parse_int=_whole, parse_float=_fraction, parse_constant=str).decode


_quick: Callable[[str], Any] = _thorough
with suppress(ImportError):  # an application need not have it
    from orjson import loads as _quick
