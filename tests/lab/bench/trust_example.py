"""Prints the worked example of ``docs/internals/judge-quality.md``.

    python tests/lab/bench/trust_example.py

Uses 1,000 synthetic runs with a lenient judge and partial labels. Deterministic.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from typer.testing import CliRunner  # noqa: E402

from pandaeval_collector.cli import app  # noqa: E402
from pandaeval_collector.store import JudgedRow, Store, WriteSet  # noqa: E402

RUNS, METRIC = 1_000, "trace.task_completion"
SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
OF_GOOD = (0.01, 0.02, 0.07, 0.30, 0.60)
OF_BAD = (0.12, 0.18, 0.30, 0.25, 0.15)
"""Distribution of judge scores for runs that people pass or fail."""


def made() -> tuple[dict[str, bool], dict[str, float]]:
    """Return labels and judge scores."""
    draw = np.random.default_rng(6)
    good = draw.random(RUNS) < 0.70
    score = np.where(good, draw.choice(SCORES, RUNS, p=OF_GOOD), draw.choice(SCORES, RUNS, p=OF_BAD))
    ids = [draw.bytes(16).hex() for _ in range(RUNS)]
    return dict(zip(ids, map(bool, good), strict=True)), dict(zip(ids, map(float, score), strict=True))


def example(folder: Path) -> Iterator[str]:
    """Return input and output line by line."""
    people, judge = made()
    data, file = folder / "data", folder / "todo.csv"
    store = Store(data, "off")
    rows = [
        JudgedRow(id_, METRIC, "", "helpdesk", s, s >= 0.5, 0.5, "openai/some-model", "4", 1.0)
        for id_, s in judge.items()
    ]
    store.commit(WriteSet(judged=rows)).result()
    store.close()
    yield f"the truth, which nobody knows: {sum(people.values()) / RUNS:.3f}"
    for more in (20, 80, 100):
        command(data, "labels", "next", "--n", str(more), "--out", str(file))
        fill_in(file, people)
        yield f"$ pandaeval labels next --n {more} --out todo.csv      # people fill in the column label"
        yield "$ pandaeval labels import todo.csv"
        yield from command(data, "labels", "import", str(file))
    command(data, "labels", "export", "--out", str(file))
    yield "$ pandaeval labels export --out labels.csv"
    yield "$ pandaeval calibrate labels.csv --store pandaeval-data"
    yield from command(data, "calibrate", str(file), "--store", str(data))


def command(data: Path, *arguments: str) -> list[str]:
    found = CliRunner().invoke(app, [*arguments], env={"PANDAEVAL_DATA": str(data), "COLUMNS": "170"})
    if found.exit_code:
        raise RuntimeError(found.output)
    return [line.rstrip() for line in found.output.splitlines()]


def fill_in(file: Path, people: dict[str, bool]) -> None:
    with file.open() as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        row |= {"label": "pass" if people[row["trace_id"]] else "fail", "annotator": "ada", "time": "2026-01-31"}
    with file.open("w") as target:
        writer = csv.DictWriter(target, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print("\n".join(example(Path(scratch))))
