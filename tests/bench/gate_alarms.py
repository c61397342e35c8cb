"""How often the gates raise a false alarm, and how soon a true one.

    python tests/bench/gate_alarms.py [--suites 5000] [--streams 500] [--looks 10000]

The whole gate: suites of regression cases tried before and now by the same agent: how often it fails (A/A).
Its test of a drop: suites of cases with rates of their own (Beta distributed), tried before and now by the same agent
(false alarms, at a level of 5 %) and, a fifth as many, by one whose rates fell (alarms found). Gate for streams: passes
and failures at the allowed rate, looked at after each one (false alarms), and below it (delay), beside a test of fixed
size at the same level that is looked at once, when it has as many observations as it takes to find the drop four times
of five.
Seeded: the same arguments print the same figures.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import binomtest

from pandaeval_collector.analysis.stats.paired import p_value
from pandaeval_collector.analysis.stats.stream import bet, nothing_begun, wealth
from pandaeval_collector.trials.passk.attempts import CaseOutcomes, CaseTrials
from pandaeval_collector.trials.passk.gate import Rules, compared

Values = np.ndarray
LEVEL = 0.05
WHOLE = ((50, 1), (20, 3), (50, 4))
SUITES = ((20, 1), (20, 5), (50, 1), (50, 3), (50, 8), (200, 3))
RATES = {"uneven (Beta .6, .6)": (0.6, 0.6), "middling (Beta 5, 5)": (5.0, 5.0), "good (Beta 9, 1)": (9.0, 1.0)}


def alarm_rate(cases: int, trials: int, shape: tuple[float, float], falls: float, suites: int, seed: int) -> float:
    """The share of suites in which the gate finds a credible drop; ``falls``: by how much every rate falls."""
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
    """The share of suites of regression cases, by an agent that did not change, in which the gate fails."""
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


def first_alarms(rate: float, before: float, since: int, now: float, looks: int, streams: int, seed: int = 2) -> Values:
    """After how many results each stream has its first alarm; infinity for none. Streams pass at the rate ``before``
    for ``since`` results and ``now`` afterwards."""
    random = np.random.default_rng(seed)
    found, begun = np.full(streams, np.inf), nothing_begun(streams)
    for n in range(1, looks + 1):
        passed = (random.random(streams) < (before if n <= since else now)).astype(np.float64)
        begun = bet(begun, n, passed, rate, LEVEL)
        on = np.asarray(wealth(begun, n)) >= 1.0 / LEVEL
        found[on & np.isinf(found)] = n
    return found


def fixed_size(rate: float, now: float, power: float = 0.8) -> int:
    """How many results an exact binomial test at the level needs, that is looked at once, to find the lower rate."""
    from scipy.stats import binom

    for n in range(5, 100_000):
        most = int(binom.ppf(LEVEL, n, rate))
        most -= int(binom.cdf(most, n, rate) > LEVEL)
        if most >= 0 and binom.cdf(most, n, now) >= power:
            return n
    raise ValueError("no such test")


def repeated_test(rate: float, looks: int, streams: int, seed: int = 3) -> float:
    """The share of streams at the allowed rate in which a normal test at the level, made for one look and looked at
    after each of 30 results and more, raises a false alarm."""
    random = np.random.default_rng(seed)
    alarmed, passed = np.zeros(streams, dtype=bool), np.zeros(streams)
    for n in range(1, looks + 1):
        passed += random.random(streams) < rate
        if n >= 30:
            alarmed |= (passed / n - rate) / np.sqrt(rate * (1.0 - rate) / n) < -1.6449
    return float(alarmed.mean())


def print_streams(streams: int, looks: int) -> None:
    print(f"gate for streams, level {LEVEL:.0%}, {streams} streams of {looks} results, a look after each")
    for rate in (0.5, 0.8, 0.9, 0.95, 0.99):
        alarms = int(np.isfinite(first_alarms(rate, rate, 0, rate, looks, streams)).sum())
        low, high = binomtest(alarms, streams).proportion_ci(0.95, method="exact")
        naive = repeated_test(rate, looks, streams)
        said = f"{alarms / streams:.1%} ({low:.1%} to {high:.1%})"
        print(f"  passes at the allowed {rate}: false alarms {said}; a test for one look, repeated: {naive:.0%}")
    for rate, now in ((0.9, 0.85), (0.9, 0.8), (0.9, 0.7), (0.9, 0.5), (0.99, 0.95), (0.8, 0.6)):
        delays = []
        for since, before in ((0, rate), (1000, min(1.0, rate + 0.05))):
            at = first_alarms(rate, before, since, now, 4000, 500) - since
            found = np.sort(at[at > 0])
            delays.append(f"{found[len(found) // 2]:.0f} (80 %: {found[int(len(found) * 0.8)]:.0f})")
        fixed = fixed_size(rate, now)
        print(
            f"  allowed {rate}, passes at {now}: median delay from the start {delays[0]}, after 1000 good results "
            f"{delays[1]}; fixed size {fixed}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", type=int, default=5000)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--looks", type=int, default=10_000)
    asked = parser.parse_args()
    print_whole(max(1, asked.suites // 5))
    print_regression(asked.suites)
    print_streams(asked.streams, asked.looks)


if __name__ == "__main__":
    main()
