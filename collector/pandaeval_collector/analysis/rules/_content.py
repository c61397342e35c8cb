"""What a result says, piece by piece: the order of its parts, ids, times, counters and costs make no difference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pandaeval_collector.analysis.rules._failures import PARSED_UP_TO
from pandaeval_collector.analysis.rules._volatile import in_results, masked

_DEPTH = 30
_MOST = 2000
"""Pieces; of a larger result nobody says whether it is like another one."""


def pieces(result: Any) -> tuple[str, ...] | None:
    """Lists the values of a result with the keys above them, sorted, or the lines of a text. Where nothing is left but
    ids, times and the like, those are what was asked for, and count. ``None`` where there are too many or they nest too
    deep."""
    try:
        parsed = _parsed(result)
        return _gathered(parsed, True) or _gathered(parsed, False)
    except _TooMuchError:
        return None


def unseen_share(said: tuple[str, ...], known: set[str]) -> float:
    """Measures, by length, the share of the pieces that are not among the known ones: 0..1."""
    size = sum(len(piece) + 1 for piece in said)
    return sum(len(piece) + 1 for piece in said if piece not in known) / size if size else 0.0


def is_empty(said: tuple[str, ...]) -> bool:
    """Whether a result holds nothing but keys: no rows, no text, no number."""
    return all(piece.endswith(("=[]", "={}", "=None", "=", "=0", "=False")) for piece in said)


class _TooMuchError(ValueError):
    pass


def _parsed(result: Any) -> Any:
    if isinstance(result, str) and len(result) <= PARSED_UP_TO and result.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(result)
        except (ValueError, RecursionError):
            return result
    return result


def _gathered(value: Any, drop: bool) -> tuple[str, ...]:
    found: list[str] = []
    for piece in _leaves(value, "", _DEPTH, drop):
        found.append(piece)
        if len(found) > _MOST:
            raise _TooMuchError
    return tuple(sorted(found))


def _leaves(value: Any, path: str, depth: int, drop: bool) -> Iterator[str]:
    if depth == 0:
        raise _TooMuchError
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if not (drop and in_results(str(key))):
                yield from _leaves(item, f"{path}.{key}", depth - 1, drop)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _leaves(item, path, depth - 1, drop)
    elif isinstance(value, str) and "\n" in value:
        for line in value.splitlines():
            if line.strip():
                yield f"{path}={masked(line.strip())}"
    elif isinstance(value, str):
        yield f"{path}={masked(value.strip())}"
    elif isinstance(value, float) and value.is_integer():
        yield f"{path}={int(value)}"
    elif isinstance(value, int) and not -(10**300) < value < 10**300:
        raise _TooMuchError  # so long that it cannot be spelled out
    else:
        yield f"{path}={value!r}"
