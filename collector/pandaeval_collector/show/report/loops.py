"""The rows of a waterfall that the page folds: the later rounds of each cycle of ``tool_loop``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_CALLS_A_ROUND = {"repeat": 1, "cycle2": 2, "cycle3": 3, "failing": 1, "ping_pong": 2}
_SHOWN = ("kind", "rounds", "tools", "agents", "seconds", "tokens")


def folds(rows: Sequence[Row], cycles: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows to fold for each cycle: ``first`` to ``last`` (inclusive) of its later rounds, with the rows
    between them. ``calls``: [row, round from 1] of each call, first round included. ``first`` is ``None`` if the rows
    overlap those of an earlier cycle or lie in a single row; then the calls are only marked."""
    at = {row["id"]: index for index, row in enumerate(rows)}
    folded: list[dict[str, Any]] = []
    taken: list[tuple[int, int]] = []
    for cycle in cycles:
        calls = _calls(cycle, at)
        span = _later_rounds(rows, calls)
        first = last = None
        if span is not None and not _overlaps(span, taken):
            first, last = span
            taken.append(span)
        shown = {name: cycle[name] for name in _SHOWN}
        folded.append({"first": first, "last": last, "calls": calls, **shown, "wasted": cycle["wasted_calls"]})
    return folded


def _calls(cycle: Row, at: Mapping[str, int]) -> list[list[int]]:
    size = _CALLS_A_ROUND.get(cycle["kind"], 1)
    return [[at[id_], number // size + 1] for number, id_ in enumerate(cycle["span_ids"]) if id_ in at]


def _overlaps(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(span[0] <= last and first <= span[1] for first, last in taken)


def _later_rounds(rows: Sequence[Row], calls: Sequence[Sequence[int]]) -> tuple[int, int] | None:
    """Return the rows from after the sibling that holds the first round to the end of the sibling that holds the last
    call; ``None`` if a row holds both."""
    opening = max([row for row, number in calls if number == 1], default=None)
    last = max([row for row, number in calls if number > 1], default=None)
    if opening is None or last is None or last <= opening:
        return None
    for above_opening, above_last in zip(_path(rows, opening), _path(rows, last), strict=False):
        if above_opening != above_last:
            return _end(rows, above_opening) + 1, _end(rows, above_last)
    return None


def _path(rows: Sequence[Row], row: int) -> list[int]:
    """Return the rows from the outermost row down to ``row``."""
    path = [row]
    while rows[path[-1]]["up"] >= 0:
        path.append(rows[path[-1]]["up"])
    return path[::-1]


def _end(rows: Sequence[Row], row: int) -> int:
    """Return the last row below ``row``."""
    depth, end = rows[row]["depth"], row
    while end + 1 < len(rows) and rows[end + 1]["depth"] > depth:
        end += 1
    return end
