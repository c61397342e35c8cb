"""The scores that labels are held against: from results as JSON lines, or from a store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pandaeval_collector.base.untrusted.given_files import result_lines
from pandaeval_collector.store import JudgedRow, numbers, people

CODE = frozenset({"code", "math", "embedding"})
"""What stands in the place of a judge's model where none judged."""
Key = tuple[str, str]
"""Unit and metric (``level.name``)."""


def from_lines(path: Path) -> dict[Key, JudgedRow]:
    """Reads the scored results of a file that ``pandaeval evaluate --format json`` or the jsonl exporter wrote: of each
    unit and metric the one with the highest revision. Raises ``UserError`` where a line is no result."""
    found: dict[Key, tuple[int, JudgedRow | None]] = {}
    for result in result_lines(path):
        _add(found, result)
    return {key: row for key, (_, row) in found.items() if row is not None}


def from_store(connection: sqlite3.Connection, units: Collection[str]) -> dict[Key, JudgedRow]:
    """Reads the scores of some units: judges' scores as far as they are kept (``labels.window``), and of other metrics
    (``store.retention``)."""
    found: dict[Key, tuple[int, JudgedRow | None]] = {}
    for marks, group in numbers.batched(numbers.of_units(connection, units)):
        query = f"SELECT body FROM results WHERE about IN ({marks}) ORDER BY seq"  # noqa: S608
        for (body,) in connection.execute(query, group):
            _add(found, json.loads(body))
    standing = {key: row for key, (_, row) in found.items() if row is not None}
    wanted = set(units)
    for row, _ in people.judged(connection):
        if row.unit in wanted:
            standing[row.unit, row.metric] = row
    return standing


def _add(found: dict[Key, tuple[int, JudgedRow | None]], result: dict[str, Any]) -> None:
    """A newer revision without a score leaves none."""
    unit = str(result.get("session_id" if result["level"] == "session" else "trace_id") or "")
    if result["level"] == "turn":
        unit = f"{unit}:{result.get('span_id', '')}"
    key = unit, f"{result['level']}.{result['metric']}"
    revision = result.get("revision") or 0
    if key not in found or found[key][0] <= revision:
        found[key] = revision, next(_scored(unit, key[1], result), None)


def _scored(unit: str, metric: str, result: dict[str, Any]) -> Iterator[JudgedRow]:
    score, evaluator = result.get("score"), result.get("evaluator") or {}
    if result["outcome"] != "scored" or not isinstance(score, int | float):
        return
    yield JudgedRow(
        unit=unit,
        metric=metric,
        session=str(result.get("session_id") or ""),
        agent=str(result.get("agent") or ""),
        score=float(score),
        passed=result.get("success"),
        threshold=result.get("threshold") if result.get("raw") is None else None,
        model=str(evaluator.get("model") or evaluator.get("kind") or ""),
        version=str(evaluator.get("version") or ""),
        probability=float((result.get("metadata") or {}).get("inclusion_probability") or 1.0),
    )
