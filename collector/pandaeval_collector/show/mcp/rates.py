"""Pass rates of two groups of results side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.analysis.stats.quantiles import wilson
from pandaeval_collector.show.mcp.fencing import said

_NORMAL = 1.959964
"""The normal quantile of a 95 % interval."""


@dataclass(slots=True)
class MetricCounts:
    """Counts by metric how many results passed, failed, and have no verdict."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)
    truncated: bool = False

    def add(self, results: Iterable[Mapping[str, Any]], version: str | None, seen: set[tuple[str, str]]) -> None:
        """Counts a page of results, newest first; of each unit and metric only the first one counts."""
        for each in results:
            if version is not None and str(each["evaluator"]["version"]) != version:
                continue
            key = f"{each['level']}.{each['metric']}"
            unit = str(each["session_id"] if each["level"] == "session" else each["trace_id"]), key
            if unit in seen:
                continue
            seen.add(unit)
            verdict = each["success"] if each["outcome"] == "scored" else None
            (self.without if verdict is None else self.passed if verdict else self.failed)[key] += 1


def compared(first: MetricCounts, second: MetricCounts) -> Iterator[str]:
    """Yields a line per metric, largest fall first: the rates, and their difference with its 95 % interval (Newcombe's,
    for independent shares)."""
    keys = {*first.passed, *first.failed, *second.passed, *second.failed}
    lines = sorted((_line(key, first, second) for key in keys), key=lambda line: line[:2])
    yield from (text for _, _, text in lines)
    for key in sorted({*first.without, *second.without} - keys):
        yield f"{said(key, 80)}: no verdicts (a: {first.without[key]}, b: {second.without[key]} unscored or assumed)"


def _line(key: str, first: MetricCounts, second: MetricCounts) -> tuple[float, str, str]:
    a, b = (tally.passed[key] + tally.failed[key] for tally in (first, second))
    if not a or not b:
        rate = first.passed[key] / a if a else second.passed[key] / b
        return 1.0, key, f"{said(key, 80)}: only in {'a' if a else 'b'}: {rate:.3f} passed of {a or b}"
    one, two = first.passed[key] / a, second.passed[key] / b
    (low_one, high_one), (low_two, high_two) = wilson(one, a, _NORMAL), wilson(two, b, _NORMAL)
    low = two - one - ((two - low_two) ** 2 + (high_one - one) ** 2) ** 0.5
    high = two - one + ((high_two - two) ** 2 + (one - low_one) ** 2) ** 0.5
    clear = "" if low <= 0.0 <= high else "; b is better" if low > 0.0 else "; b is worse"
    return (
        two - one,
        key,
        f"{said(key, 80)}: a {one:.3f} passed of {a}, b {two:.3f} of {b}; difference {two - one:+.3f} "
        f"({low:+.3f} to {high:+.3f}){clear}",
    )
