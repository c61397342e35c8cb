"""The gate for streams: what its wealth is, how rarely it is wrong, and that it finds what goes wrong late."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.stream import BOLDNESS, StreamGate, bet, nothing_begun, wealth


def test_wealth_is_spread_over_stakes_and_beginnings() -> None:
    gate, values = StreamGate(0.8), [1.0, 0.0, 0.0, 1.0, 0.0]
    for value in values:
        gate.add(value)
    expected = 1.0 / (len(values) + 1)
    for begin in range(len(values)):
        share = 1.0 / ((begin + 1) * (begin + 2))
        for boldness in BOLDNESS:
            won = math.prod(1.0 + boldness / 0.2 * (0.8 - value) for value in values[begin:])
            expected += share * won / len(BOLDNESS)
    assert gate.e_value == pytest.approx(expected)


def test_a_fair_game_gains_nothing_on_average() -> None:
    gate = StreamGate(0.9)
    for value in (1.0, 1.0, 0.0):
        gate.add(value)
    passed, failed = (StreamGate.restored(0.9, 0.05, gate.state()) for _ in range(2))
    passed.add(1.0)
    failed.add(0.0)
    assert 0.9 * passed.e_value + 0.1 * failed.e_value == pytest.approx(gate.e_value)


@pytest.mark.parametrize(
    "rate", [pytest.param(0.5, marks=pytest.mark.slow), 0.9, pytest.param(0.99, marks=pytest.mark.slow)]
)
def test_false_alarms_stay_below_the_level_under_ten_thousand_looks(rate: float) -> None:
    streams, level = 150, 0.05
    random = np.random.default_rng(5)
    begun, alarmed = nothing_begun(streams), np.zeros(streams, dtype=bool)
    for n in range(1, 10_001):
        begun = bet(begun, n, (random.random(streams) < rate).astype(float), rate, level)
        if n % 5 == 0:
            alarmed |= np.asarray(wealth(begun, n)) >= 1.0 / level
    assert alarmed.mean() <= level + 0.01


def test_what_goes_wrong_late_is_found_and_what_is_well_again_ends_the_alarm() -> None:
    random, gate = np.random.default_rng(7), StreamGate(0.9)
    for passed in random.random(2000) < 0.97:
        assert not gate.add(float(passed))
    for passed in random.random(400) < 0.6:
        gate.add(float(passed))
    assert gate.is_on
    assert gate.alarmed_at is not None
    assert 2000 < gate.alarmed_at < 2200
    for passed in random.random(1000) < 0.99:
        gate.add(float(passed))
    assert not gate.is_on


def test_what_fails_throughout_is_found_at_once() -> None:
    gate = StreamGate(0.9)
    assert any(gate.add(0.0) for _ in range(6))


def test_scores_between_are_held_against_their_mean() -> None:
    good, bad = StreamGate(0.5), StreamGate(0.5)
    for _ in range(300):
        good.add(0.5)
        bad.add(0.3)
    assert not good.is_on
    assert bad.is_on


def test_goes_on_from_its_state() -> None:
    gate = StreamGate(0.9)
    for value in (0.0, 1.0, 0.0):
        gate.add(value)
    again = StreamGate.restored(0.9, 0.05, json.loads(json.dumps(gate.state())))
    assert (again.e_value, again.n, again.alarmed_at) == (gate.e_value, gate.n, gate.alarmed_at)
    with pytest.raises(ValueError):
        StreamGate.restored(0.9, 0.05, {"n": 1, "alarmed_at": None, "begun": [1.0]})


@pytest.mark.parametrize(("rate", "level"), [(0.0, 0.05), (1.0, 0.05), (0.9, 0.0), (0.9, 1.0)])
def test_what_cannot_be_watched_is_refused(rate: float, level: float) -> None:
    with pytest.raises(ValueError):
        StreamGate(rate, level)


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(ValueError):
        StreamGate(0.9).add(1.5)
