"""Simulates the coverage of the intervals of ``pandaeval calibrate``.

    python tests/lab/bench/calibrate_coverage.py [--draws 400]

The judge sees hidden quality through noise, small (*sharp*) or large (*dim*). The truth comes from 40,000 runs.
Prints the share of intervals that *held* it, and the share with *none*.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._table import table  # noqa: E402
from pandaeval_collector.analysis.stats.corrected_rate import Labelled  # noqa: E402
from pandaeval_lab.labels.judge_agreement import AgreementEstimate, agreement  # noqa: E402

SIZES = (50, 200)
NOISES = {"sharp": 0.3, "dim": 1.0}
PASSED = (0.5, 0.9)
THRESHOLD = 0.5
MEASURES = ("kappa", "auroc", "tpr", "fpr")
Values = NDArray[np.float64]


def world(
    draw: np.random.Generator, n: int, passed: float, noise: float, per_session: int
) -> tuple[Values, Values, list[int]]:
    """Return labels, scores and sessions of ``n`` runs."""
    sessions = np.repeat(np.arange(n // per_session), per_session)
    alike = 0.6 if per_session > 1 else 0.0
    quality = np.sqrt(alike) * draw.normal(size=n // per_session)[sessions] + np.sqrt(1 - alike) * draw.normal(size=n)
    people = (quality > NormalDist().inv_cdf(1 - passed)).astype(float)
    seen = quality + noise * draw.normal(size=n)
    return people, np.round(1 / (1 + np.exp(-1.7 * seen)), 1), sessions.tolist()


def measured(people: Values, judge: Values, sessions: list[int] | None) -> dict[str, AgreementEstimate]:
    found = agreement(Labelled.of(people, judge, None, sessions), people, THRESHOLD)
    return {"kappa": found.kappa, "auroc": found.auroc, "tpr": found.tpr, "fpr": found.fpr}


@cache
def _truth(passed: float, judge: str) -> dict[str, AgreementEstimate]:
    return measured(*world(np.random.default_rng(7), 40_000, passed, NOISES[judge], 1)[:2], None)


def row(n: int, passed: float, judge: str, per_session: int, draws: int) -> tuple[object, ...]:
    truth = _truth(passed, judge)
    draw = np.random.default_rng(n)
    held: dict[str, list[bool]] = {name: [] for name in MEASURES}
    for _ in range(draws):
        for name, each in measured(*world(draw, n, passed, NOISES[judge], per_session)).items():
            if each.low is not None and each.high is not None:
                value = truth[name].value
                assert value is not None
                held[name].append(each.low <= value <= each.high)
    shares = [f"{np.mean(each):.2f}" if each else "-" for each in held.values()]
    none = max(1 - len(each) / draws for each in held.values())
    return "5" if per_session > 1 else "1", judge, f"{passed:g}", n, *shares, f"{none:.2f}"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=400)
    draws = options.parse_args().draws
    rows = [
        row(n, passed, judge, per_session, draws)
        for per_session in (1, 5)
        for judge in NOISES
        for passed in PASSED
        for n in SIZES
    ]
    head = ("sessions of", "judge", "passed", "n", *MEASURES, "none")
    print(table("calibrate's 95 % intervals: held", head, rows))


if __name__ == "__main__":
    main()
