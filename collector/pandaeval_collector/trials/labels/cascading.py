"""Holds a cheap judge's scores against a strong one's, or people's, to find where they may stand."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.stats.corrected_rate import CascadeRule, cascade_rule
from pandaeval_collector.base.untrusted.given_files import result_lines
from pandaeval_collector.store import JudgedRow, numbers, people
from pandaeval_collector.trials.labels.calibration import word_of_most
from pandaeval_otel.wire.labels import HumanLabel

# The scores that labels are held against: from results as JSON lines, or from a store.
CODE = frozenset({"code", "math", "embedding"})
"""Kinds of evaluators that take the place of a judge's model where none judged."""


def from_lines(path: Path) -> dict[Key, JudgedRow]:
    """Reads the scored results of a file that ``pandaeval evaluate --format json`` or the jsonl exporter wrote: of each
    unit and metric the one with the highest revision. Raises ``UserError`` where a line is no result."""
    found: dict[Key, tuple[int, JudgedRow | None]] = {}
    for result in result_lines(path):
        _add(found, result)
    return {key: row for key, (_, row) in found.items() if row is not None}


def from_store(connection: sqlite3.Connection, units: Collection[str]) -> dict[Key, JudgedRow]:
    """Reads the scores of some units: judges' scores within ``labels.window``, other metrics' within
    ``store.retention``."""
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
    """Adds a result unless a newer revision is known; a revision without a score removes an older score."""
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


_MIDDLE = 0.5
Key = tuple[str, str]
"""Unit and metric (``level.name``)."""


@dataclass(frozen=True, slots=True)
class FoundCascade:
    """A cascade for one version of a metric. ``strong``: ``""`` for people; ``n``: runs, one of each session;
    ``cheap_usd``, ``strong_usd``: mean cost of a verdict. ``rule`` is ``None`` where no agreement can be promised."""

    metric: str
    version: str
    cheap: str
    strong: str
    n: int
    rule: CascadeRule | None
    cheap_usd: float
    strong_usd: float


def against_results(
    cheap: Mapping[Key, JudgedRow],
    strong: Mapping[Key, JudgedRow],
    agree: float,
    cheap_usd: Mapping[str, float],
    strong_usd: Mapping[str, float],
) -> list[FoundCascade]:
    """Finds a cascade for each metric that both judges scored in the same version, on the same units."""
    pairs = [
        (row, _passes(strong[key], row), strong[key].model)
        for key, row in sorted(cheap.items())
        if key in strong and strong[key].version == row.version and row.model != strong[key].model
    ]
    return _found(pairs, agree, cheap_usd, strong_usd)


def against_labels(
    cheap: Mapping[Key, JudgedRow], labels: Iterable[HumanLabel], agree: float, cheap_usd: Mapping[str, float]
) -> list[FoundCascade]:
    """Finds cascades with people's verdicts in place of a strong judge's."""
    by_metric: dict[str, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        by_metric[label.metric].append(label)
    said = {
        (unit, metric): passed for metric, own in by_metric.items() for unit, (passed, _) in word_of_most(own).items()
    }
    pairs = [(row, said[key], "") for key, row in sorted(cheap.items()) if key in said]
    return _found(pairs, agree, cheap_usd, {})


def _found(
    pairs: Iterable[tuple[JudgedRow, bool, str]],
    agree: float,
    cheap_usd: Mapping[str, float],
    strong_usd: Mapping[str, float],
) -> list[FoundCascade]:
    groups: dict[tuple[str, str, str, str], dict[str, tuple[JudgedRow, bool]]] = defaultdict(dict)
    for row, passed, strong in (each for each in pairs if each[0].model not in CODE):
        groups[row.metric, row.version, row.model, strong].setdefault(row.session or row.unit, (row, passed))
    return [
        FoundCascade(
            *key, len(runs), _rule([*runs.values()], agree), cheap_usd.get(key[0], 0.0), strong_usd.get(key[0], 0.0)
        )
        for key, runs in sorted(groups.items())
    ]


def _rule(runs: list[tuple[JudgedRow, bool]], agree: float) -> CascadeRule | None:
    threshold = next((row.threshold for row, _ in runs if row.threshold is not None), _MIDDLE)
    return cascade_rule([row.score for row, _ in runs], [passed for _, passed in runs], threshold, agree)


def _passes(row: JudgedRow, cheap: JudgedRow) -> bool:
    threshold = next((each.threshold for each in (row, cheap) if each.threshold is not None), _MIDDLE)
    return row.score >= threshold - 1e-9
