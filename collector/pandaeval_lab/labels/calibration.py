"""Compares judges' scores with people's labels."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from pandaeval_collector.analysis.stats.corrected_rate import LEAST_LABELS, Labelled
from pandaeval_collector.show.view.texts import number
from pandaeval_collector.store import JudgedRow, people
from pandaeval_lab.labels.judge_agreement import AgreementEstimate, JudgeAgreement, agreement
from pandaeval_lab.labels.judge_report import Figure, JudgeReport
from pandaeval_otel.wire.labels import HumanLabel

_MIDDLE = 0.5
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Agreement of a judge with people, for a metric version.

    ``tied``: excluded runs with equal pass and fail labels.
    """

    metric: str
    judge: str
    version: str
    tied: int
    agreement: JudgeAgreement


@dataclass(frozen=True, slots=True)
class Calibrations:
    """All calibrations. ``unmatched``: labelled runs without a score, by metric."""

    found: list[Calibration]
    unmatched: Mapping[str, int]


def calibrate(labels: Iterable[HumanLabel], standing: Mapping[Key, JudgedRow]) -> Calibrations:
    """Compare scores with each run's majority label. ``standing``: scores by unit and metric."""
    groups: dict[tuple[str, str, str], list[tuple[JudgedRow, list[HumanLabel]]]] = defaultdict(list)
    unmatched: dict[str, int] = defaultdict(int)
    for key, verdicts in by_run(labels).items():
        row = standing.get(key)
        if row is None or row.probability <= 0.0:
            unmatched[key[1]] += 1
        else:
            groups[row.metric, row.model, row.version].append((row, verdicts))
    found = (_calibration(*key, pairs) for key, pairs in sorted(groups.items()))
    return Calibrations([each for each in found if each is not None], dict(unmatched))


def by_run(labels: Iterable[HumanLabel]) -> dict[Key, list[HumanLabel]]:
    found: dict[Key, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        found[label.unit, label.metric].append(label)
    return found


def word_of_most(labels: Iterable[HumanLabel]) -> dict[Key, tuple[bool, str]]:
    found = {}
    for key, verdicts in by_run(labels).items():
        share = fmean(passes(each, _MIDDLE) for each in verdicts)
        if share != 0.5:
            agreeing = (each.comment for each in verdicts if passes(each, _MIDDLE) == (share > 0.5))
            found[key] = share > 0.5, next(filter(None, agreeing), "")
    return found


def _calibration(
    metric: str, judge: str, version: str, pairs: list[tuple[JudgedRow, list[HumanLabel]]]
) -> Calibration | None:
    threshold = next((row.threshold for row, _ in reversed(pairs) if row.threshold is not None), _MIDDLE)
    shares = [fmean(passes(label, threshold) for label in verdicts) for _, verdicts in pairs]
    kept = [at for at, share in enumerate(shares) if share != 0.5]
    if not kept:
        return None
    rows, labels_by_run = [pairs[at][0] for at in kept], [pairs[at][1] for at in kept]
    chances = [
        next((each.probability for each in run_labels if each.probability is not None), None)
        for run_labels in labels_by_run
    ]
    labelled = Labelled.of(
        [fmean(_grade(each) for each in run_labels) for run_labels in labels_by_run],
        [row.score for row in rows],
        weights([row.probability for row in rows], chances),
        [row.session or row.unit for row in rows],
    )
    passing = np.asarray([float(shares[at] > 0.5) for at in kept])
    return Calibration(metric, judge, version, len(pairs) - len(kept), agreement(labelled, passing, threshold))


def weights(judged: list[float], drawn: list[float | None]) -> list[float]:
    """Return inverse probabilities of being judged and labelled.

    Manually chosen runs count as a random sample; both parts are combined by effective size (Kish).
    """
    by_hand = np.asarray([not chance for chance in drawn])
    found = 1.0 / (np.asarray(judged) * np.asarray([chance or 1.0 for chance in drawn]))
    for part in filter(np.any, (by_hand, ~by_hand)):
        found[part] *= found[part].sum() / (found[part] ** 2).sum()
    return [*map(float, found)]


def passes(label: HumanLabel, threshold: float | None) -> bool:
    if label.passed is not None:
        return label.passed
    return _grade(label) >= (threshold or _MIDDLE) - 1e-9


def _grade(label: HumanLabel) -> float:
    if label.score is not None:
        return label.score
    return float(bool(label.passed))


def report(calibration: Calibration) -> JudgeReport:
    at = calibration.agreement
    about = {
        "metric": calibration.metric,
        "judge": calibration.judge,
        "version": calibration.version,
        "tied": calibration.tied,
        **{name: getattr(at, name) for name in ("n", "passed", "failed", "threshold")},
    }
    figures = (
        _figure("kappa", at.n, "runs", at.kappa),
        _figure("AUROC", at.n, "runs", at.auroc),
        _figure("passes of good runs", at.passed, "good runs", at.tpr),
        _figure("passes of bad runs", at.failed, "bad runs", at.fpr),
        _figure("suggested threshold", at.n, "runs", at.suggested),
    )
    title = f"{calibration.judge} as a judge of {calibration.metric}, version {calibration.version}"
    return JudgeReport(f"{title}, threshold {at.threshold:g}", about, figures, tuple(_notes(calibration)))


def _figure(name: str, n: int, unit: str, value: AgreementEstimate) -> Figure:
    return Figure(name, n, unit, number(value.value) if n else "unknown", value.value, value.low, value.high)


def _notes(calibration: Calibration) -> Iterator[str]:
    metric, n = calibration.metric, calibration.agreement.n
    if n < LEAST_LABELS:
        yield f"{metric}: {n} labels are few, so the intervals are wide"
    if calibration.tied:
        yield f"{metric}: {calibration.tied} runs left out, which as many people passed as failed"


def from_lines(results: Iterable[dict[str, Any]]) -> dict[Key, JudgedRow]:
    """Return the scored results among JSON objects, the highest revision per unit and metric."""
    newest: dict[Key, dict[str, Any]] = {}
    for result in results:
        key = _unit(result), f"{result['level']}.{result['metric']}"
        if key not in newest or _revision(result) >= _revision(newest[key]):
            newest[key] = result
    return {key: _row(*key, result) for key, result in newest.items() if _is_scored(result)}


def from_store(connection: sqlite3.Connection) -> dict[Key, JudgedRow]:
    """Return the scores of judges within 30 days."""
    return {(row.unit, row.metric): row for row, _ in people.judged(connection)}


def _unit(result: dict[str, Any]) -> str:
    if result["level"] == "session":
        return str(result.get("session_id") or "")
    trace = str(result.get("trace_id") or "")
    if result["level"] == "turn":
        return f"{trace}:{result.get('span_id', '')}"
    return trace


def _revision(result: dict[str, Any]) -> int:
    return result.get("revision") or 0


def _is_scored(result: dict[str, Any]) -> bool:
    return result["outcome"] == "scored" and isinstance(result.get("score"), int | float)


def _row(unit: str, metric: str, result: dict[str, Any]) -> JudgedRow:
    evaluator = result.get("evaluator") or {}
    return JudgedRow(
        unit=unit,
        metric=metric,
        session=str(result.get("session_id") or ""),
        agent=str(result.get("agent") or ""),
        score=float(result["score"]),
        passed=result.get("success"),
        threshold=result.get("threshold") if result.get("raw") is None else None,
        model=str(evaluator.get("model") or evaluator.get("kind") or ""),
        version=str(evaluator.get("version") or ""),
        probability=float((result.get("metadata") or {}).get("inclusion_probability") or 1.0),
    )
