"""The parts of tool correctness that code can tell: selection, parameters and sequence, each 0..1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, permutations

from pandaeval_collector.analysis.stats.assignment import best_matching
from pandaeval_collector.analysis.stats.tools import common_order, tool_selection_f1
from pandaeval_collector.scoring.cases.arguments import agreement
from pandaeval_collector.scoring.cases.model import ExpectedCall
from pandaeval_otel.model import ToolCall

_MOST_ORDERS = 720
Worth = Callable[[ExpectedCall, ToolCall], float]


def in_best_order(expected: Sequence[ExpectedCall], actual: Sequence[str]) -> list[str]:
    """The names of ``expected``; neighbours of equal ``step`` in the order that has most in common with ``actual``. Of
    more than 720 orders, each step is put into the order in which ``actual`` first has its tools."""
    groups = [[call.tool_name for call in group] for group in _steps(expected)]
    if all(len(group) == 1 for group in groups):
        return [name for group in groups for name in group]
    if math.prod(math.factorial(len(group)) for group in groups) > _MOST_ORDERS:
        place = {name: at for at, name in reversed([*enumerate(actual)])}
        return [name for group in groups for name in sorted(group, key=lambda n: place.get(n, len(actual)))]
    return max(_orders(groups), key=lambda order: common_order(order, actual))


def _steps(expected: Sequence[ExpectedCall]) -> Iterator[list[ExpectedCall]]:
    numbered = ((call.step if call.step is not None else f"alone {at}", call) for at, call in enumerate(expected))
    for _, group in groupby(numbered, key=lambda item: item[0]):
        yield [call for _, call in group]


def _orders(groups: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    if not groups:
        yield []
        return
    for first in dict.fromkeys(permutations(groups[0])):
        for rest in _orders(groups[1:]):
            yield [*first, *rest]


def matched(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], worth: Worth = agreement
) -> list[tuple[int, int, float]]:
    """(expected, call, worth) of the matching with the best sum; only calls of one tool are matched."""
    found: list[tuple[int, int, float]] = []
    for name in dict.fromkeys(each.tool_name for each in expected):
        rows = [at for at, each in enumerate(expected) if each.tool_name == name]
        columns = [at for at, call in enumerate(calls) if call.name == name]
        table = [[worth(expected[row], calls[column]) for column in columns] for row in rows]
        found += [(rows[r], columns[c], table[r][c]) for r, c in best_matching(table)]
    return sorted(found)


def tool_parts(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], in_order: bool) -> dict[str, float]:
    """``in_order``: whether the sequence matters. Each part is 1 where neither is any call expected nor made."""
    called, longest = [call.name for call in calls], max(len(expected), len(calls))
    order = common_order(called, in_best_order(expected, called)) / longest if longest else 1.0
    return {
        "selection": tool_selection_f1(called, [each.tool_name for each in expected]),
        "parameters": math.fsum(worth for _, _, worth in matched(expected, calls)) / longest if longest else 1.0,
        "sequence": order if in_order else 1.0,
    }
