"""Measures how model-free scores separate runs of known outcome.

    python tests/lab/bench/labelled.py [--only SET ...] [--metric NAME ...] [--limit UNITS] [--json | --summary]

Scores ``../shared/data`` and ``../shared/captures`` (good: *happy*), with trivial baselines. Prints for each metric:

- *AUROC*, and *same length*: within thirds by length;
- *bad ones failed* (recall), *right when it fails* (precision), *good ones failed*;
- 95 % intervals.

A trace metric counts by its worst trace. ``--summary`` prints the table of docs/internals/metric-quality.md (``>
collector/pandaeval_collector/scoring/metrics/labelled.md``, then ``cd tests && python -m support.metrics_page``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]


from lab.bench._labelled_runs import LABELS, LARGEST, Scored, capture, default_evaluator, labelled  # noqa: E402
from lab.bench._separation import NOTHING, Z95, ShareEstimate, auroc, auroc_within, thirds  # noqa: E402
from lab.bench._table import table  # noqa: E402
from pandaeval_collector.analysis.stats.quantiles import wilson  # noqa: E402
from pandaeval_collector.cli._output import progress  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator  # noqa: E402

SHARED = ROOT.parent / "shared"
CAPTURES = "captures"
HEAD = ("metric", "good", "bad", "AUROC", "same length", "bad ones failed", "right when it fails", "good ones failed")
SUMMARY_HEAD = ("set", "metric", "good / bad", "AUROC", "same length", "bad ones failed", "good ones failed")


def share(hits: int, of: int) -> ShareEstimate:
    """Return a proportion with Wilson's interval."""
    return ShareEstimate(hits / of, *wilson(hits / of, of, Z95), of) if of else NOTHING


@dataclass(frozen=True, slots=True)
class Row:
    """One metric on one set."""

    metric: str
    good: int
    bad: int
    auroc: ShareEstimate
    same_length: ShareEstimate
    recall: ShareEstimate
    precision: ShareEstimate
    good_failed: ShareEstimate

    def summary(self, of: str) -> list[str]:
        shares = (self.auroc, self.same_length, self.recall, self.good_failed)
        return [of, self.metric, f"{self.good} / {self.bad}", *map(str, shares)]

    def cells(self) -> list[str]:
        shares = (self.auroc, self.same_length, self.recall, self.precision, self.good_failed)
        return [self.metric, str(self.good), str(self.bad), *map(str, shares)]


def rows(units: Sequence[Scored], metrics: Sequence[str]) -> list[Row]:
    """Return rows of scored metrics and baselines. ``metrics``: name parts; none: all."""
    names = sorted({name for unit in units for name in unit.scores})
    names = [name for name in names if name != "trace.blame"]  # blame does not rate a run
    wanted = [name for name in names if not metrics or any(part in name for part in metrics)]
    third = dict(zip(map(id, units), thirds([unit.spans for unit in units]), strict=True))
    found = [
        _row(name, [(u, u.scores[name], u.failed[name]) for u in units if name in u.scores], third) for name in wanted
    ]
    trivial = units[0].baselines() if units and units[0].good is not None else ()
    return found + [_row(name, [(unit, unit.baselines()[name], None) for unit in units], third) for name in trivial]


def _row(name: str, scored: Sequence[tuple[Scored, float, bool | None]], third: dict[int, int]) -> Row:
    good = [(unit, score, failed) for unit, score, failed in scored if unit.good is not False]
    bad = [(unit, score, failed) for unit, score, failed in scored if unit.good is False]
    within = [
        ([s for u, s, _ in good if third[id(u)] == part], [s for u, s, _ in bad if third[id(u)] == part])
        for part in range(3)
    ]
    caught, false = sum(failed is True for *_, failed in bad), sum(failed is True for *_, failed in good)
    judges = not name.startswith(LARGEST)
    return Row(
        name,
        len(good),
        len(bad),
        auroc([score for _, score, _ in good], [score for _, score, _ in bad]),
        auroc_within(within),
        share(caught, len(bad) if judges else 0),
        share(caught, caught + false if bad and judges else 0),
        share(false, len(good) if judges else 0),
    )


def captured(scorer: Evaluator, limit: int | None) -> Iterator[tuple[str, list[Scored]]]:
    """Return each other scenario's captures with the happy captures."""
    sets = sorted(folder for folder in (SHARED / CAPTURES).iterdir() if folder.is_dir())[:limit]
    names = sorted({path.name for folder in sets for path in folder.glob("*.otlp.jsonl")} - {"happy.otlp.jsonl"})
    with progress(CAPTURES) as on_progress:
        paths = [folder / name for name in ("happy.otlp.jsonl", *names) for folder in sets]
        paths = [path for path in paths if path.exists()]
        units: dict[str, list[Scored]] = {}
        for done, path in enumerate(paths):
            units.setdefault(path.name, []).append(capture(path, scorer, path.name == "happy.otlp.jsonl"))
            on_progress(done + 1, len(paths))
    for name in names:
        yield f"captures: {name.removesuffix('.otlp.jsonl')} against happy", units["happy.otlp.jsonl"] + units[name]


def sets(scorer: Evaluator, only: Sequence[str], limit: int | None) -> Iterator[tuple[str, list[Scored]]]:
    for name in LABELS:
        if not only or name in only:
            with progress(name) as on_progress:
                yield name, labelled(SHARED / "data" / name, scorer, limit, on_progress)
    if not only or CAPTURES in only:
        yield from captured(scorer, limit)


def summary(labelled_sets: Iterator[tuple[str, list[Scored]]], metrics: Sequence[str]) -> str:
    """Return one table of all sets."""
    found = []
    for name, units in labelled_sets:
        of_captures = name.startswith(CAPTURES)
        for row in rows(units, metrics):
            if of_captures and (row.metric.startswith(LARGEST) or not (row.recall.value or row.good_failed.value)):
                continue
            found.append(row.summary(name))
    return table("Scores without a judge, held against labels", SUMMARY_HEAD, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", action="append", default=[], choices=[*LABELS, CAPTURES], help="a set; may be repeated"
    )
    parser.add_argument("--metric", action="append", default=[], help="part of a metric's name; may be repeated")
    parser.add_argument("--limit", type=int, help="at most so many units of a set (captures: sets)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object a row instead of tables")
    form.add_argument(
        "--summary", action="store_true", help="all sets in one table, for docs/internals/metric-quality.md"
    )
    asked = parser.parse_args()
    if not (SHARED / "data").is_dir():
        sys.exit(f"{SHARED / 'data'} is not there: the labelled runs are not part of this repository")
    scorer = default_evaluator()
    if asked.summary:
        print(summary(sets(scorer, asked.only, asked.limit), asked.metric))
        return
    for name, units in sets(scorer, asked.only, asked.limit):
        found = rows(units, asked.metric)
        if asked.json:
            for row in found:
                print(json.dumps({"set": name} | asdict(row)))
        else:
            print(table(f"{name} ({len(units)} units)", HEAD, [row.cells() for row in found]), flush=True)


if __name__ == "__main__":
    main()
