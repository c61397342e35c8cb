"""Does a cascade keep its promise, and what does it save?

    python tests/bench/cascade.py [--draws 500]

A strong and a cheap judge see the hidden quality of runs through noise and score it in tenths (the strong one *sharp*;
the cheap one *near* it, *dim*, or a *flatterer* that adds to everything). So many runs are judged by both to find where
the cheap one decides; then 20,000 others say how often the cascade agrees with the strong judge. *Kept* is the share of
calibrations of which that is at least what was promised, .95; nine of ten is what is claimed. *Asked* is the mean share
of runs in which the strong judge is asked, *none* that of calibrations that find no rule (it is then always asked).
The second table is *judge-arena*: half of 480 answers of a cheap judge calibrate it against labels (pass from 0.7 on),
the other half says how often they agree where it decides, in as many random halves.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from bench._table import table  # noqa: E402
from bench.corrected_rates import ARENA, PASSING, policies  # noqa: E402
from pandaeval_collector.analysis.stats.corrected_rate import AGREE, CascadeRule, cascade_rule  # noqa: E402

SIZES = (50, 100, 200, 400)
CHEAP = {"near": (0.3, 0.0), "dim": (1.0, 0.0), "flatterer": (0.5, 1.0)}
THRESHOLD = 0.5
Values = NDArray[np.float64]


def both(draw: np.random.Generator, n: int, cheap: str) -> tuple[Values, NDArray[np.bool_]]:
    """The cheap judge's scores, and whether the strong one passes each run."""
    noise, more = CHEAP[cheap]
    quality = 0.8 + draw.normal(size=n)
    strong = _score(quality + 0.2 * draw.normal(size=n))
    return _score(quality + more + noise * draw.normal(size=n)), strong >= THRESHOLD


def _score(seen: Values) -> Values:
    found: Values = np.round(1 / (1 + np.exp(-1.7 * seen)), 1)
    return found


def agreed(rule: CascadeRule | None, cheap: Values, strong: NDArray[np.bool_], threshold: float) -> tuple[float, float]:
    """How often the cascade says what the strong judge says, and how often that is asked."""
    if rule is None:
        return 1.0, 1.0
    stands = (cheap <= rule.low + 1e-9) | (cheap >= rule.high - 1e-9)
    return float(1 - (stands & ((cheap >= threshold) != strong)).mean()), float(1 - stands.mean())


def row(n: int, cheap: str, draws: int) -> tuple[object, ...]:
    draw = np.random.default_rng(n)
    truth = both(np.random.default_rng(1), 20_000, cheap)
    found, none = [], 0
    for _ in range(draws):
        scores, strong = both(draw, n, cheap)
        rule = cascade_rule(scores.tolist(), strong.tolist(), THRESHOLD)
        none += rule is None
        found.append(agreed(rule, *truth, THRESHOLD))
    agree, asked = (np.asarray(each) for each in zip(*found, strict=True))
    shares = (agree >= AGREE).mean(), agree.mean(), asked.mean(), none / draws
    return cheap, n, *(f"{each:.3f}" for each in shares)


def arena(draws: int) -> tuple[object, ...]:
    base, draw = policies()["base"].labelled, np.random.default_rng(2)
    found, none = [], 0
    for _ in range(draws):
        order = draw.permutation(len(base.judge))
        half, other = order[: len(order) // 2], order[len(order) // 2 :]
        rule = cascade_rule(base.judge[half].tolist(), (base.label[half] >= PASSING).tolist(), PASSING)
        none += rule is None
        found.append(agreed(rule, base.judge[other], base.label[other] >= PASSING, PASSING))
    agree, asked = (np.asarray(each) for each in zip(*found, strict=True))
    shares = (agree >= AGREE).mean(), agree.mean(), asked.mean(), none / draws
    return "judge-arena", len(base.judge) // 2, *(f"{each:.3f}" for each in shares)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=500)
    draws = options.parse_args().draws
    rows = [row(n, cheap, draws) for cheap in CHEAP for n in SIZES]
    head = ("cheap judge", "n", "kept", "agrees", "asked", "none")
    print(table("cascades that promise .95", head, rows))
    if ARENA.exists():
        print(table("judge-arena, random halves", head, [arena(draws)]))


if __name__ == "__main__":
    main()
