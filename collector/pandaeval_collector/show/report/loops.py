"""Loops as parts of the waterfall: which rows repeat what stands above them, so that they can be drawn as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_CALLS_A_ROUND = {"repeat": 1, "cycle2": 2, "cycle3": 3, "ping_pong": 2}


def groups(rows: Sequence[Mapping[str, Any]], cycles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each of the cycles that ``tool_loop`` found, the rows ``first``..``last`` (inclusive) of its later rounds,
    with what lies between them; the first round stays outside. ``calls``: [row, round from 1] of each call of the
    cycle, first round included. Cycles whose rows overlap those of an earlier one, or lie in one row, give
    ``first = None``: their calls are marked and not folded."""
    at = {row["id"]: index for index, row in enumerate(rows)}
    found: list[dict[str, Any]] = []
    taken: list[tuple[int, int]] = []
    for cycle in cycles:
        size = _CALLS_A_ROUND.get(cycle["kind"], 1)
        calls = [[at[id_], n // size + 1] for n, id_ in enumerate(cycle["span_ids"]) if id_ in at]
        opening = [row for row, number in calls if number == 1]
        later = [row for row, number in calls if number > 1]
        span = _span(rows, max(opening), max(later)) if opening and later else None
        if span is not None and any(span[0] <= last and first <= span[1] for first, last in taken):
            span = None
        if span is not None:
            taken.append(span)
        found.append(
            {
                "first": span[0] if span else None,
                "last": span[1] if span else None,
                "calls": calls,
                "kind": cycle["kind"],
                "rounds": cycle["rounds"],
                "tools": list(cycle["tools"]),
                "agents": list(cycle["agents"]),
                "wasted": cycle["wasted_calls"],
                "seconds": cycle["seconds"],
                "tokens": cycle["tokens"],
            }
        )
    return found


def _span(rows: Sequence[Mapping[str, Any]], opening: int, last: int) -> tuple[int, int] | None:
    """The rows of the siblings after the one that holds row ``opening``, up to and with the one that holds ``last``."""
    above_opening, above_last = _path(rows, opening), _path(rows, last)
    shared = 0
    while shared < min(len(above_opening), len(above_last)) and above_opening[shared] == above_last[shared]:
        shared += 1
    if last <= opening or shared >= len(above_opening) or shared >= len(above_last):
        return None  # one holds the other: there are no siblings to fold
    return _end(rows, above_opening[shared]) + 1, _end(rows, above_last[shared])


def _path(rows: Sequence[Mapping[str, Any]], row: int) -> list[int]:
    """From the outermost row down to ``row``."""
    path = [row]
    while rows[path[-1]]["up"] >= 0:
        path.append(rows[path[-1]]["up"])
    return path[::-1]


def _end(rows: Sequence[Mapping[str, Any]], row: int) -> int:
    """The last row below ``row``."""
    depth, end = rows[row]["depth"], row
    while end + 1 < len(rows) and rows[end + 1]["depth"] > depth:
        end += 1
    return end
