"""The parts of tool correctness that code can tell: selection, parameters and sequence, each 0..1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pandaeval_collector.analysis.stats.tools import common_order, tool_selection_f1
from pandaeval_collector.scoring.cases.calls import matched
from pandaeval_collector.scoring.cases.model import ExpectedCall
from pandaeval_collector.scoring.cases.steps import in_best_order
from pandaeval_otel.model import ToolCall


def tool_parts(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], in_order: bool) -> dict[str, float]:
    """``in_order``: whether the sequence matters. Each part is 1 where neither is any call expected nor made."""
    called, longest = [call.name for call in calls], max(len(expected), len(calls))
    order = common_order(called, in_best_order(expected, called)) / longest if longest else 1.0
    return {
        "selection": tool_selection_f1(called, [each.tool_name for each in expected]),
        "parameters": math.fsum(worth for _, _, worth in matched(expected, calls)) / longest if longest else 1.0,
        "sequence": order if in_order else 1.0,
    }
