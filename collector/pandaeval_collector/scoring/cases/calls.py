"""Expected calls and those that were made, matched one to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandaeval_collector.analysis.stats.assignment import best_matching
from pandaeval_collector.scoring.cases.arguments import agreement
from pandaeval_collector.scoring.cases.model import ExpectedCall
from pandaeval_otel.model import ToolCall

Worth = Callable[[ExpectedCall, ToolCall], float]


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
