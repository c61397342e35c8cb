"""Measures coverage and width of corrected pass rates against labels alone.

    python tests/lab/bench/corrected_rates.py [--draws 2000]

Resamples ``../shared/data/judge-arena``, with n labelled answers per draw. *Held* is coverage of the true mean,
*ratio* the relative width. The second table draws labels as ``pandaeval labels next``. The third corrects another
policy's answers with labels of the first.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._table import table  # noqa: E402
from pandaeval_collector.analysis.stats.corrected_rate import Labelled, Scores, corrected_rate, label_rate  # noqa: E402
from pandaeval_collector.labels.queue import drawn, wanted  # noqa: E402

ARENA = ROOT.parent / "shared" / "data" / "judge-arena" / "labels.jsonl"
SIZES = (50, 75, 100, 200, 300, 480)
RUNS = 1_000
PASSING = 0.7
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Policy:
    """Judge scores and labels (NaN without)."""

    judge: Values
    label: Values

    @property
    def labelled(self) -> Policy:
        known = ~np.isnan(self.label)
        return Policy(self.judge[known], self.label[known])

    def passing(self) -> Policy:
        """Return verdicts instead of grades."""
        return Policy(self.judge, np.where(np.isnan(self.label), np.nan, self.label >= PASSING))


def policies() -> dict[str, Policy]:
    rows = [json.loads(line) for line in ARENA.read_text().splitlines()]
    found = {}
    for name in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == name]
        labels = [np.nan if row["label"] is None else row["label"] for row in own]
        found[name] = Policy(np.asarray([row["judge"] for row in own]), np.asarray(labels))
    return found


def coverage(truth: Policy, n: int, draws: int, by_queue: bool, seed: int = 1) -> tuple[object, ...]:
    """Return a row: n, both coverages, widths, ratio, corrected share and largest excess."""
    draw, rate = np.random.default_rng(seed + n), truth.label.mean()
    held, widths, used = np.zeros(2), np.zeros((draws, 2)), 0
    for number in range(draws):
        at = draw.integers(0, len(truth.judge), RUNS)
        judge, label = truth.judge[at], truth.label[at]
        some, weights = np.arange(n), np.ones(n)
        if by_queue:
            wants = wanted(judge, np.full(RUNS, PASSING))
            some, chances = drawn(1.0 - draw.random(RUNS), wants, np.ones(RUNS, bool), n)
            weights = 1.0 / chances[some]
        labelled = Labelled.of(label[some], judge[some], weights)
        both = corrected_rate(labelled, Scores(float(judge.mean()), RUNS)), label_rate(labelled)
        held += [each.low <= rate <= each.high for each in both]
        widths[number] = [each.width for each in both]
        used += both[0].method == "corrected"
    held, mean = held / draws, widths.mean(0)
    worst = (widths[:, 0] / widths[:, 1]).max()
    return n, *(f"{each:.3f}" for each in (held[0], held[1], *mean, mean[0] / mean[1], used / draws, worst))


def carried_over(of: Policy, to: Policy, probe: Policy) -> tuple[object, ...]:
    """Return the rate of ``to`` by labels of ``of``, and by its own."""
    known = of.labelled
    there = Labelled.of(known.label, known.judge)
    moved = corrected_rate(there, Scores(float(to.judge.mean()), len(to.judge)))
    own = probe.labelled
    apart = label_rate(Labelled.of(own.label, own.judge))
    return (
        f"{known.label.mean():.3f}",
        f"{known.judge.mean():.3f}",
        f"{to.judge.mean():.3f}",
        f"{moved.value:.3f} ({moved.low:.3f} to {moved.high:.3f})",
        f"{apart.value:.3f} ({apart.low:.3f} to {apart.high:.3f})",
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=2000)
    draws = options.parse_args().draws
    found = policies()
    base = found["base"].labelled
    head = ("n", "held", "held, labels alone", "width", "labels alone", "ratio", "corrected", "widest ratio")
    for by_queue, title in ((False, "labelled at random"), (True, "labelled as the queue draws")):
        for truth, what in ((base, "grades"), (base.passing(), f"pass or fail at {PASSING}")):
            rows = [coverage(truth, n, draws, by_queue) for n in SIZES]
            print(table(f"{title}: {what}, truth {truth.label.mean():.3f}", head, rows))
    head = ("label, base", "judge, base", "judge, clone", "clone by labels of base", "clone by 50 labels of its own")
    rows = [
        carried_over(*(found[each] for each in ("base", "clone", "clone_probe"))),
        carried_over(*(found[each].passing() for each in ("base", "clone", "clone_probe"))),
    ]
    print(table("another policy: grades, then verdicts", head, rows))


if __name__ == "__main__":
    main()
