"""Holds judges' scores against people's labels, and keeps what comes of it in a file."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from pandaeval_collector.analysis.stats.corrected_rate import LEAST_LABELS, Labelled
from pandaeval_collector.analysis.stats.judge_agreement import (
    AnnotatorAgreement,
    JudgeAgreement,
    agreement,
    annotator_agreement,
)
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given, result_lines
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.labels.files import save
from pandaeval_collector.labels.rates import weights
from pandaeval_collector.store import JudgedRow, numbers, people
from pandaeval_otel.wire.labels import HumanLabel

_log = logging.getLogger(__name__)

FORMAT = 1
_MIDDLE = 0.5
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well one judge's scores of one version of a metric agree with people. ``tied``: runs that as many people
    passed as failed, which are left out; ``annotators``: people's agreement with each other, where two labelled any
    run."""

    metric: str
    judge: str
    version: str
    tied: int
    agreement: JudgeAgreement
    annotators: AnnotatorAgreement | None


@dataclass(frozen=True, slots=True)
class Calibrations:
    """All calibrations, and (``unmatched``) the number of labelled runs without a score, by metric."""

    found: list[Calibration]
    unmatched: Mapping[str, int]


def calibrate(labels: Iterable[HumanLabel], standing: Mapping[Key, JudgedRow]) -> Calibrations:
    """Compares scores with labels. ``standing``: scores by unit and metric. Several labels of a run count as one, that
    of the majority."""
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
    """Groups labels by unit and metric."""
    found: dict[Key, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        found[label.unit, label.metric].append(label)
    return found


def word_of_most(labels: Iterable[HumanLabel]) -> dict[Key, tuple[bool, str]]:
    """Maps each run, by unit and metric, to whether most people pass it, and a comment of one of them; leaves out
    ties."""
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
    rows, told = [pairs[at][0] for at in kept], [pairs[at][1] for at in kept]
    chances = [next((each.probability for each in said if each.probability is not None), None) for said in told]
    labelled = Labelled.of(
        [fmean(_grade(each) for each in said) for said in told],
        [row.score for row in rows],
        weights([row.probability for row in rows], chances),
        [row.session or row.unit for row in rows],
    )
    passing = np.asarray([float(shares[at] > 0.5) for at in kept])
    among = [list({each.annotator: passes(each, threshold) for each in verdicts}.values()) for _, verdicts in pairs]
    found = agreement(labelled, passing, threshold)
    return Calibration(metric, judge, version, len(pairs) - len(kept), found, annotator_agreement(among))


def passes(label: HumanLabel, threshold: float | None) -> bool:
    """Returns whether a person's label passes the run."""
    return label.passed if label.passed is not None else _grade(label) >= (threshold or _MIDDLE) - 1e-9


def _grade(label: HumanLabel) -> float:
    return label.score if label.score is not None else float(bool(label.passed))


# -- the file ----------------------------------------------------------------------------------------------------


def as_dict(each: Calibration) -> dict[str, Any]:
    """Returns a calibration for JSON."""
    found = asdict(each.agreement)
    return {
        "metric": each.metric,
        "judge": each.judge,
        "version": each.version,
        "tied": each.tied,
        **{key: found[key] for key in ("n", "passed", "failed", "threshold", "kappa", "mcc")},
        "quadratic_kappa": found["graded"],
        "auroc": found["auroc"],
        "suggested_threshold": {**found["suggested"], "criterion": "youden"},
        "by_threshold": list(found["at"]),
        "annotators": asdict(each.annotators) if each.annotators else None,
    }


def write(calibrations: Collection[Calibration], path: Path) -> None:
    """Writes the file that :func:`read` reads."""
    held = {"format": FORMAT, "calibrations": [as_dict(each) for each in calibrations]}
    save(path, json.dumps(held, indent=1) + "\n")


class Kept(BaseModel):
    """The part of a stored calibration that a collector uses."""

    model_config = ConfigDict(frozen=True)

    metric: str
    judge: str
    version: str
    n: int = Field(ge=0)
    suggested: float | None = Field(ge=0.0, le=1.0, validation_alias=AliasPath("suggested_threshold", "value"))


class _File(BaseModel):
    format: int = Field(ge=FORMAT, le=FORMAT)
    calibrations: tuple[Kept, ...]


def read(path: Path) -> tuple[Kept, ...]:
    """Reads a calibration. Raises ``UserError`` for a file that :func:`write` did not make."""
    try:
        return _File.model_validate_json(read_given(path)).calibrations
    except OSError as error:
        raise UserError(f"judge.calibration: {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        said = one_printable_line(f"judge.calibration: {path}: {place}: {first['msg']}")
        raise UserError(f"{said}; make it with `pandaeval calibrate --write`") from error


def thresholds(kept: Iterable[Kept], judges: Mapping[str, tuple[str, str]]) -> dict[str, float]:
    """Returns the suggested thresholds by metric key. ``judges``: the present judge's model and version by metric key.
    Warns of metrics calibrated only for another judge or version, or with fewer than 50 labels, and leaves them out."""
    by_metric: dict[str, list[Kept]] = defaultdict(list)
    for each in kept:
        by_metric[each.metric].append(each)
    found: dict[str, float] = {}
    for metric in by_metric.keys() & judges.keys():
        fitting = [each for each in by_metric[metric] if (each.judge, each.version) == judges[metric]]
        if not fitting:
            other, now = by_metric[metric][-1], judges[metric]
            _warn(
                f"{metric} was calibrated for {other.judge} (version {other.version}), and {now[0]} (version {now[1]}) "
                "judges: calibrate anew"
            )
        elif fitting[-1].n < LEAST_LABELS:
            _warn(f"{metric} was calibrated with {fitting[-1].n} labels; a threshold takes {LEAST_LABELS}")
        elif fitting[-1].suggested is not None:
            found[metric] = fitting[-1].suggested
    return found


@cache  # settings are made more than once at a start
def _warn(what: str) -> None:
    _log.warning("judge.calibration: %s", what)


# The scores that labels are held against: from results as JSON lines, or from a store.
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
    if key in found and found[key][0] > revision:
        return
    score, evaluator = result.get("score"), result.get("evaluator") or {}
    if result["outcome"] != "scored" or not isinstance(score, int | float):
        found[key] = revision, None
        return
    found[key] = (
        revision,
        JudgedRow(
            unit=unit,
            metric=key[1],
            session=str(result.get("session_id") or ""),
            agent=str(result.get("agent") or ""),
            score=float(score),
            passed=result.get("success"),
            threshold=result.get("threshold") if result.get("raw") is None else None,
            model=str(evaluator.get("model") or evaluator.get("kind") or ""),
            version=str(evaluator.get("version") or ""),
            probability=float((result.get("metadata") or {}).get("inclusion_probability") or 1.0),
        ),
    )
