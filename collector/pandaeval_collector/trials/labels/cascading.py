"""Holds a cheap judge's scores against a strong one's, or people's, to find where they may stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pandaeval_collector.analysis.stats.corrected_rate import CascadeRule, cascade_rule
from pandaeval_collector.store import JudgedRow
from pandaeval_collector.trials.labels.calibration import word_of_most
from pandaeval_collector.trials.labels.standing import CODE
from pandaeval_otel.wire.labels import HumanLabel

_MIDDLE = 0.5
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FoundCascade:
    """Of one metric in one version. ``strong``: ``""`` for people; ``n``: runs, one of each session; ``cheap_usd``,
    ``strong_usd``: what a verdict costs in the mean. ``rule`` is ``None`` where nothing can be promised."""

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
    """Finds a cascade for each metric that both judges scored in the same version."""
    pairs = [
        (row, _passes(strong[key], row), strong[key].model)
        for key, row in sorted(cheap.items())
        if key in strong and strong[key].version == row.version and row.model != strong[key].model
    ]
    return _found(pairs, agree, cheap_usd, strong_usd)


def against_labels(
    cheap: Mapping[Key, JudgedRow], labels: Iterable[HumanLabel], agree: float, cheap_usd: Mapping[str, float]
) -> list[FoundCascade]:
    """Finds cascades with people's verdicts in the place of the strong judge's."""
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
