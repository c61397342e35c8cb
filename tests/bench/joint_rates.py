"""How often the interval of a rate by several judges holds the truth, and how many labels it is worth.

    python tests/bench/joint_rates.py [--draws 1000]

Runs have a hidden quality; people pass those above a line, judges see it through noise and score it in tenths, one of
them flatters. 2,000 runs are judged by all, n of them have a label. *Held* is the share of draws whose interval holds
the truth; of 1,000 draws at 0.95 it lies in 0.936 to 0.964. *Worth* is the factor by which labels alone would have to
be more for as narrow an interval: in the mean, with the first judge, and with all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from bench._table import table  # noqa: E402
from pandaeval_collector.analysis.stats.corrected_rate import Labelled, joint_rate  # noqa: E402

RUNS, SIZES, PASSED = 2_000, (100, 200, 400), (0.5, 0.7, 0.9)
JUDGES = {
    "two sharp": (0.5, 0.7),
    "two alike": (0.8, 0.8),
    "three": (0.5, 0.7, 1.0),
    "one, and one of no use": (0.6, 30.0),
}
FLATTERS = 0.6
Values = NDArray[np.float64]


def world(draw: np.random.Generator, passed: float, noises: Sequence[float]) -> tuple[Values, Values]:
    """What people would say of all runs, and the judges' scores, a column for each."""
    quality = draw.normal(size=RUNS)
    people = (quality > NormalDist().inv_cdf(1 - passed)).astype(float)
    seen = [quality + noise * draw.normal(size=RUNS) + FLATTERS * (at == 0) for at, noise in enumerate(noises)]
    return people, np.round(1 / (1 + np.exp(-1.7 * np.column_stack(seen))), 1)


def row(name: str, passed: float, n: int, draws: int) -> tuple[object, ...]:
    draw = np.random.default_rng(n)
    held, first, every = 0, [], []
    for _ in range(draws):
        people, judges = world(draw, passed, JUDGES[name])
        labelled = Labelled.of(people[:n], people[:n])  # type: ignore[arg-type]
        both = joint_rate(labelled, judges[:n], judges.mean(0).tolist(), RUNS)
        one = joint_rate(labelled, judges[:n, :1], judges[:, :1].mean(0).tolist(), RUNS)
        held += both.rate.low <= passed <= both.rate.high
        first.append(one.worth)
        every.append(both.worth)
    return name, f"{passed:g}", n, f"{held / draws:.3f}", f"{np.mean(first):.2f}", f"{np.mean(every):.2f}"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=1000)
    draws = options.parse_args().draws
    rows = [row(name, passed, n, draws) for name in JUDGES for passed in PASSED for n in SIZES]
    head = ("judges", "passed", "n", "held", "worth, first judge", "worth, all")
    print(table("rates by several judges", head, rows))


if __name__ == "__main__":
    main()
