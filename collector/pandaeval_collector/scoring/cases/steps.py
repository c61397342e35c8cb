"""The order of expected calls, where some may come in any order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, permutations

from pandaeval_collector.analysis.stats.tools import common_order
from pandaeval_collector.scoring.cases.model import ExpectedCall

_MOST_ORDERS = 720


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
