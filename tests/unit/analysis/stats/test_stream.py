"""The gate for streams: what its wealth is, how rarely it is wrong, and that it finds what goes wrong late."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.stream import _MOST, BOLDNESS, StreamGate, bet, nothing_begun, wealth


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


@pytest.mark.parametrize("passes", ["", "1", "1" * 40 + "0" * 60])
def test_a_gate_goes_on_from_its_state_as_if_nothing_had_been(passes: str) -> None:
    gate = StreamGate(0.9, 0.01)
    for each in passes:
        gate.add(float(each))
    again = StreamGate.restored(0.9, 0.01, json.loads(json.dumps(gate.state())))
    assert (again.n, again.alarmed_at, again.e_value, again.level) == (len(passes), gate.alarmed_at, gate.e_value, 0.01)
    assert (again.alarmed_at is None) is (len(passes) < 100)
    for value in (0.0, 1.0, 0.0):
        assert again.add(value) is gate.add(value)
        assert (again.e_value, again.is_on, again.alarmed_at) == (gate.e_value, gate.is_on, gate.alarmed_at)


@pytest.mark.parametrize(
    "begun", [[0.0], [0.0] * (len(BOLDNESS) + 1), [math.nan] * len(BOLDNESS), [math.inf] * len(BOLDNESS)]
)
def test_what_is_no_state_of_a_gate_is_refused(begun: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^not the state of a gate$"):
        StreamGate.restored(0.9, 0.05, {"n": 3, "alarmed_at": None, "begun": begun})


def test_many_streams_fare_as_each_would_alone() -> None:
    streams = np.random.default_rng(3).random((40, 3)) < np.array([0.9, 0.5, 0.0])
    many, alone = nothing_begun(3), [nothing_begun() for _ in range(3)]
    assert (many.shape, alone[0].shape) == ((3, len(BOLDNESS)), (len(BOLDNESS),))
    for n, passed in enumerate(streams.astype(float), 1):
        many = bet(many, n, passed, 0.9, 0.05)
        alone = [bet(begun, n, value, 0.9, 0.05) for begun, value in zip(alone, passed, strict=True)]
        for row, begun, total in zip(many, alone, np.asarray(wealth(many, n)), strict=True):
            assert np.allclose(row, begun)
            assert total == pytest.approx(float(wealth(begun, n)))


def test_what_was_won_is_kept_up_to_a_limit_so_that_an_alarm_can_end() -> None:
    begun = nothing_begun()
    for n in range(1, 2000):
        begun = bet(begun, n, np.float64(0.0), 0.9, 0.05)
        assert begun.mean() <= _MOST / 0.05 * (1 + 1e-9)
    assert begun.mean() == pytest.approx(_MOST / 0.05)


@pytest.mark.parametrize(
    ("rate", "level"), [(0.0, 0.05), (1.0, 0.05), (0.9, 0.0), (0.9, 1.0), (math.nan, 0.05), (0.9, math.nan)]
)
def test_a_rate_and_a_level_lie_between_0_and_1(rate: float, level: float) -> None:
    with pytest.raises(ValueError, match=r"^rate and level lie between 0 and 1"):
        StreamGate(rate, level)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_result_lies_in_0_to_1(value: float) -> None:
    with pytest.raises(ValueError, match=r"^a result lies in 0\.\.1"):
        StreamGate(0.9).add(value)
