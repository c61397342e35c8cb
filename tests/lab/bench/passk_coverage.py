"""Measures coverage of the intervals of pass^k, pass@k and suites.

    python tests/lab/bench/passk_coverage.py [--suites 300]

Cases: exact coverage for n = 1 ... 20 trials on a grid of rates. Suites: simulated cases with four trials, compared
with Wilson's interval and the bootstrap. Deterministic. Needs scipy (``pip install scipy``).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.quantiles import means
from pandaeval_lab.passk.figures import ENOUGH_CASES, interval

LEVEL = 0.95
GRID = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
SHAPES = {"uneven (Beta .4, .4)": (0.4, 0.4), "middling (Beta 3, 3)": (3.0, 3.0), "good (Beta 9, 1)": (9.0, 1.0)}
TRIALS = 4


def of_case(n: int, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coverage by true rate after ``n`` trials."""
    from scipy.special import betaincinv
    from scipy.stats import binom

    c = np.arange(n + 1)
    low, high = (betaincinv(1 + c, 1 + n - c, share) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    holds = (low[None, :] <= rates[:, None]) & (rates[:, None] <= high[None, :])
    found: NDArray[np.float64] = (binom.pmf(c[None, :], n, rates[:, None]) * holds).sum(axis=1)
    return found


def truth(shape: tuple[float, float], k: int) -> float:
    """Return the mean of p^k over all cases."""
    a, b = shape
    return float(np.prod([(a + i) / (a + b + i) for i in range(k)]))


def of_suite(cases: int, shape: tuple[float, float], k: int, suites: int, seed: int = 4) -> tuple[float, float, float]:
    """Return coverage of interval and bootstrap, and width."""
    random = np.random.default_rng(seed)
    rates = random.beta(*shape, size=(suites, cases))
    passed = random.binomial(TRIALS, rates)
    groups = np.array([_groups(c, k) for c in range(TRIALS + 1)])
    expected, held, held_by_bootstrap, width = truth(shape, k), 0, 0, 0.0
    for values in groups[passed]:
        low, high, _ = interval(list(values))
        held, width = held + (low <= expected <= high), width + high - low
        drawn = np.quantile(means(values, np.ones(cases)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        held_by_bootstrap += bool(drawn[0] <= expected <= drawn[1])
    return held / suites, held_by_bootstrap / suites, width / suites


def _groups(c: int, k: int) -> float:
    from math import comb

    return comb(c, k) / comb(TRIALS, k)


def print_cases() -> None:
    print(f"Bayesian {LEVEL:.0%} interval of one case, by true rate: share of repetitions that hold the truth")
    print("   n  mean over all rates  " + "".join(f"{rate:>7}" for rate in GRID))
    fine = np.linspace(0.0005, 0.9995, 1000)
    for n in (*range(1, 11), 15, 20):
        at = of_case(n, np.array(GRID))
        print(f"  {n:2}  {of_case(n, fine).mean():18.1%}  " + "".join(f"{share:7.1%}" for share in at))
    within = [of_case(n, fine[(fine >= 0.05) & (fine <= 0.95)]) for n in range(1, 21)]
    lowest = min((float(each.min()), n) for n, each in enumerate(within, 1))
    print(f"  lowest at any rate from 0.05 to 0.95 and n from 1 to 20: {lowest[0]:.1%} (n = {lowest[1]})")


def print_suites(suites: int) -> None:
    print(
        f"suite interval of pass^k, {TRIALS} trials a case, {suites} suites each: held | by the bootstrap alone | width"
    )
    for name, shape in SHAPES.items():
        for cases in (5, 10, 20, 49, 50, 100, 200):
            for k in (1, 4):
                held, bootstrap, width = of_suite(cases, shape, k, suites)
                method = "Wilson" if cases < ENOUGH_CASES else "bootstrap"
                print(f"  {name:21} {cases:4} cases, k = {k}, {method:9}: {held:6.1%} | {bootstrap:6.1%} | {width:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", type=int, default=300)
    asked = parser.parse_args()
    print_cases()
    print_suites(asked.suites)


if __name__ == "__main__":
    main()
