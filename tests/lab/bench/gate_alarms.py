"""Simulates false and true alarms of the gates.

    python tests/lab/bench/gate_alarms.py [--suites 5000]

Measures the whole gate and its drop test on unchanged agents, and the drop test on worse agents. Deterministic.
"""

from __future__ import annotations

import argparse

import numpy as np

from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials
from pandaeval_lab.passk.gate import Rules, compared, p_value

Values = np.ndarray
LEVEL = 0.05
WHOLE = ((50, 1), (20, 3), (50, 4))
SUITES = ((20, 1), (20, 5), (50, 1), (50, 3), (50, 8), (200, 3))
RATES = {"uneven (Beta .6, .6)": (0.6, 0.6), "middling (Beta 5, 5)": (5.0, 5.0), "good (Beta 9, 1)": (9.0, 1.0)}


def alarm_rate(cases: int, trials: int, shape: tuple[float, float], falls: float, suites: int, seed: int) -> float:
    """Return the share of suites with a credible drop; ``falls``: drop of every rate."""
    random = np.random.default_rng(seed)
    rates = random.beta(*shape, size=(suites, cases))
    before = random.binomial(trials, rates)
    now = random.binomial(trials, np.maximum(0.0, rates - falls))
    alarms = 0
    for old, new in zip(before, now, strict=True):
        pairs = [((trials, int(c0)), (trials, int(c1))) for c0, c1 in zip(old, new, strict=True)]
        alarms += new.sum() < old.sum() and p_value(pairs) <= LEVEL
    return alarms / suites


def print_regression(suites: int) -> None:
    print(
        f"regression gate, level {LEVEL:.0%}, {suites} suites each: alarms where nothing changed | all rates 0.1 lower"
    )
    for name, shape in RATES.items():
        for cases, trials in SUITES:
            shares = [
                alarm_rate(cases, trials, shape, 0.0, suites, seed=9),
                alarm_rate(cases, trials, shape, 0.1, max(1, suites // 5), seed=1),
            ]
            print(f"  {name:22} {cases:4} cases x {trials} trials: {shares[0]:6.1%} | {shares[1]:6.1%}")


def failures_of_the_whole(cases: int, trials: int, shape: tuple[float, float], suites: int, seed: int) -> float:
    """Return the share of unchanged suites that fail."""
    random = np.random.default_rng(seed)
    rates = random.beta(*shape, size=(suites, cases))
    before, now = (random.binomial(trials, rates) for _ in range(2))
    failed = 0
    for old, new in zip(before, now, strict=True):
        failed += not compared(_tried(old, trials), _tried(new, trials), Rules()).passed
    return failed / suites


def _tried(successes: Values, trials: int) -> CaseTrials:
    made = [
        CaseOutcomes(f"{at}", {(f"{trial}", ""): trial < int(c) for trial in range(trials)}, "regression")
        for at, c in enumerate(successes)
    ]
    return CaseTrials("trial.trial_correct", "case", tuple(made))


def print_whole(suites: int) -> None:
    print(f"whole gate, level {LEVEL:.0%}, regression cases, {suites} suites each: failed where nothing changed")
    for name, shape in RATES.items():
        found = [f"{c} x {t}: {failures_of_the_whole(c, t, shape, suites, seed=5):.1%}" for c, t in WHOLE]
        print(f"  {name:22} {', '.join(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", type=int, default=5000)
    asked = parser.parse_args()
    print_whole(max(1, asked.suites // 5))
    print_regression(asked.suites)


if __name__ == "__main__":
    main()
