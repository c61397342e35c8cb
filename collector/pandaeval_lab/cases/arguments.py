"""Matches calls to expected calls, and compares their arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.tools import common_order, tool_selection_f1
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_lab.cases.model import ExpectedCall
from pandaeval_otel.model import ToolCall

_MOST_SHOWN = 60
_LOOSE = re.compile(r"[\s,./_*^'\"()-]+")
_MOST_ORDERS = 720
Values = NDArray[np.float64]
Worth = Callable[[ExpectedCall, ToolCall], float]


def best_matching(worth: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the (row, column) pairs with the largest sum, by row (Hungarian algorithm, Kuhn 1955).

    All rows have the same length.
    """
    if not worth or not worth[0]:
        return []
    if len(worth) > len(worth[0]):
        turned = best_matching([*zip(*worth, strict=True)])
        return sorted((row, column) for column, row in turned)
    costs = np.pad(-np.asarray(worth, np.float64), ((1, 0), (1, 0)))  # rows and columns from 1; 0: no partner
    row_price, column_price = np.zeros(len(costs)), np.zeros(len(costs[0]))
    taken_by = np.zeros(len(costs[0]), np.int64)
    for row in range(1, len(costs)):
        _place(row, costs, row_price, column_price, taken_by)
    return sorted((int(row) - 1, column - 1) for column, row in enumerate(taken_by) if column and row)


def _place(row: int, costs: Values, row_price: Values, column_price: Values, taken_by: NDArray[np.int64]) -> None:
    slack, came_from = np.full(len(column_price), np.inf), np.zeros(len(column_price), np.int64)
    is_seen = np.zeros(len(column_price), np.bool_)
    taken_by[0], column = row, 0
    while taken_by[column]:
        is_seen[column] = True
        current = taken_by[column]
        cost = costs[current] - row_price[current] - column_price
        is_nearer = ~is_seen & (cost < slack)
        slack[is_nearer], came_from[is_nearer] = cost[is_nearer], column
        column = int(np.where(is_seen, np.inf, slack).argmin())
        step = slack[column]
        row_price[taken_by[is_seen]] += step
        column_price[is_seen] -= step
        slack[~is_seen] -= step
    while column:
        taken_by[column] = taken_by[came_from[column]]
        column = came_from[column]


def same(expected: Any, actual: Any) -> bool:
    """Return whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return expected.keys() == actual.keys() and all(same(value, actual[key]) for key, value in expected.items())
    if _is_list(expected) and _is_list(actual):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    return bool(expected == actual)


def argument_equal(call: ExpectedCall, name: str, actual: Any) -> bool:
    """Return whether an argument is expected or acceptable by the case's rules."""
    how = call.compare_args[name] if isinstance(call.compare_args, Mapping) and name in call.compare_args else "exact"
    expected = call.parameters or {}
    candidates = [*([expected[name]] if name in expected else ()), *call.acceptable.get(name, ())]
    if how == "any":
        return True
    return any(_EQUAL[how](candidate, actual) for candidate in candidates)


def agreement(expected: ExpectedCall, call: ToolCall) -> float:
    """Return the number of equal arguments divided by the number of all arguments. Return 1 if there are none."""
    right = _compared(expected, call)
    return sum(right.values()) / len(right) if right else 1.0


def semantic(expected: ExpectedCall, call: ToolCall) -> float | None:
    """Return the share of expected arguments that are equal, or ``None``."""
    compared = _compared(expected, call)
    if compared is None:
        return None
    right = [is_right for name, is_right in compared.items() if name in _expected(expected)]
    return sum(right) / len(right) if right else 1.0


def differing(expected: ExpectedCall, call: ToolCall) -> list[str]:
    """Describe each wrong argument: ``city: 'Rome' instead of 'Paris'``."""
    compared, arguments = _compared(expected, call) or {}, arguments_of(call)
    return [_difference(expected, name, arguments) for name, is_right in sorted(compared.items()) if not is_right]


def _expected(call: ExpectedCall) -> set[str]:
    return {*(call.parameters or {}), *call.acceptable}


def _compared(expected: ExpectedCall, call: ToolCall) -> dict[str, bool] | None:
    if expected.parameters is None and not expected.acceptable:
        return None
    arguments, known = arguments_of(call), _expected(expected)
    names = known | arguments.keys()
    if expected.compare_args is not None:
        names &= set(expected.compare_args)
    return {
        name: name in known and argument_equal(expected, name, arguments[name])
        if name in arguments
        else name in expected.optional
        for name in names
    }


def _difference(expected: ExpectedCall, name: str, arguments: Mapping[str, Any]) -> str:
    if name not in arguments:
        return f"{name} is missing"
    if name not in _expected(expected):
        return f"{name} was not expected"
    right = (expected.parameters or {}).get(name, *expected.acceptable.get(name, (None,))[:1])
    return f"{name}: {_shown(arguments[name])} instead of {_shown(right)}"


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else as_text(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    return call.arguments if isinstance(call.arguments, Mapping) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same_number(expected: Any, actual: Any) -> bool:
    one, other = _number(expected), _number(actual)
    if one is None or other is None:
        return same(expected, actual)
    return one == other


def _loose(value: Any) -> Any:
    if isinstance(value, str):
        return _LOOSE.sub("", value).casefold()
    if isinstance(value, Mapping):
        return {key: _loose(each) for key, each in value.items()}
    if _is_list(value):
        return [_loose(each) for each in value]
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _same_items(expected: Any, actual: Any) -> bool:
    if not (_is_list(expected) and _is_list(actual)):
        return same(expected, actual)
    left = list(actual)
    for item in expected:
        at = next((at for at, other in enumerate(left) if same(item, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


_EQUAL: Mapping[str, Callable[[Any, Any], bool]] = {
    "exact": same,
    "text": lambda expected, actual: same(_loose(expected), _loose(actual)),
    "number": _same_number,
    "unordered": _same_items,
}


def in_best_order(expected: Sequence[ExpectedCall], actual: Sequence[str]) -> list[str]:
    """Return the names of ``expected``. Calls with the same ``step`` are in the order closest to ``actual``.

    If there are more than 720 orders, they are sorted by first use.
    """
    numbered = ((call.step if call.step is not None else f"alone {at}", call) for at, call in enumerate(expected))
    groups = [[call.tool_name for _, call in group] for _, group in groupby(numbered, key=lambda item: item[0])]
    if math.prod(math.factorial(len(group)) for group in groups) > _MOST_ORDERS:
        place = {name: at for at, name in reversed([*enumerate(actual)])}
        return [name for group in groups for name in sorted(group, key=lambda n: place.get(n, len(actual)))]
    orders = product(*(dict.fromkeys(permutations(group)) for group in groups))
    return max(([*chain(*order)] for order in orders), key=lambda order: common_order(order, actual))


def matched(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], worth: Worth = agreement
) -> list[tuple[int, int, float]]:
    """Return the best matching as (expected, call, worth), within the same tool."""
    found: list[tuple[int, int, float]] = []
    for name in dict.fromkeys(each.tool_name for each in expected):
        rows = [at for at, each in enumerate(expected) if each.tool_name == name]
        columns = [at for at, call in enumerate(calls) if call.name == name]
        table = [[worth(expected[row], calls[column]) for column in columns] for row in rows]
        found += [(rows[r], columns[c], table[r][c]) for r, c in best_matching(table)]
    return sorted(found)


def within(allowed: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> tuple[ExpectedCall, ...]:
    """Return the most similar allowed call of the same tool, for each call of an allowed tool."""
    same_tool = ([each for each in allowed if each.tool_name == call.name] for call in calls)
    pairs = ((call, several) for call, several in zip(calls, same_tool, strict=True) if several)
    return tuple(max(several, key=lambda each: agreement(each, call)) for call, several in pairs)


def tool_parts(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], in_order: bool) -> dict[str, float]:
    """Compute the parts. Each part is 1 without expected and actual calls. ``in_order``: the sequence matters."""
    called, longest = [call.name for call in calls], max(len(expected), len(calls))
    order = common_order(called, in_best_order(expected, called)) / longest if longest else 1.0
    return {
        "selection": tool_selection_f1(called, [each.tool_name for each in expected]),
        "parameters": math.fsum(worth for _, _, worth in matched(expected, calls)) / longest if longest else 1.0,
        "sequence": order if in_order else 1.0,
    }
