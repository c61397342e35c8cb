"""Choice of runs to label."""

from __future__ import annotations

import hashlib

import numpy as np

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, Scores, corrected_rate
from pandaeval_collector.labels.queue import drawn, numbers_of, wanted


def test_half_of_the_weight_is_near_the_threshold_and_every_run_has_some() -> None:
    scores = np.r_[np.full(900, 0.95), np.full(100, 0.5)]
    wants = wanted(scores, np.full(1000, 0.5))
    assert np.isclose(wants.sum(), 1.0)
    assert wants.min() >= 0.5 / 1000
    assert 0.35 < wants[900:].sum() < 0.55


def test_a_larger_draw_contains_the_smaller_and_the_last_runs_are_certain() -> None:
    ids = [f"run {number}" for number in range(300)]
    numbers, wants = numbers_of(ids), wanted(np.linspace(0, 1, 300), np.full(300, 0.5))
    every = np.ones(300, bool)
    first, _ = drawn(numbers, wants, every, 20)
    both, chances = drawn(numbers, wants, every, 40)
    assert list(both[:20]) == list(first)
    left = every.copy()
    left[first] = False
    second, again = drawn(numbers, wants, left, 20)
    assert set(second) | set(first) == set(both)
    assert np.allclose(again, chances)
    rest, sure = drawn(numbers, wants, left, 1000)
    assert len(rest) == 280
    assert (sure == 1.0).all()


def test_runs_are_drawn_as_often_as_their_probabilities() -> None:
    draw, times, chances = np.random.default_rng(4), np.zeros(60), np.zeros(60)
    wants = wanted(np.linspace(0, 1, 60), np.full(60, 0.5))
    for _ in range(3000):
        at, chance = drawn(1.0 - draw.random(60), wants, np.ones(60, bool), 15)
        times[at] += 1
        chances += chance
    assert np.abs(times - chances).max() / 3000 < 0.04
    assert np.isclose(times.sum() / 3000, 15)


def test_rates_from_drawn_runs_are_unbiased() -> None:
    draw = np.random.default_rng(8)
    judge = np.clip(draw.normal(0.8, 0.15, 4000), 0, 1)
    people = (draw.random(4000) < np.clip(1.6 * judge - 0.5, 0, 1)).astype(float)
    wants, values, plain = wanted(judge, np.full(4000, 0.5)), [], []
    scores = Scores(float(judge.mean()), 4000)
    for _ in range(150):
        at, chances = drawn(1.0 - draw.random(4000), wants, np.ones(4000, bool), 100)
        values.append(corrected_rate(Labelled.of(people[at], judge[at], 1 / chances[at]), scores).value)
        plain.append(people[at].mean())
    assert abs(np.mean(values) - people.mean()) < 0.015
    assert np.mean(plain) < people.mean() - 0.05


def test_the_number_of_a_run_is_a_fixed_hash_of_its_id() -> None:
    """Personalised BLAKE2b, eight bytes."""
    for id_ in ("", "run 1", "ein Lauf mit ü"):
        digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"label drawing").hexdigest()
        assert numbers_of([id_])[0] == (int(digest, 16) + 1) / 2.0**64
    assert numbers_of(["run 1"])[0] == 0.30203673665096076
    numbers = numbers_of([f"run {at}" for at in range(2000)])
    assert numbers.dtype == np.float64
    assert 0.0 < numbers.min() < 0.01 < 0.99 < numbers.max() <= 1.0
    assert abs(numbers.mean() - 0.5) < 0.03


def test_the_weight_of_a_run_falls_with_its_distance_from_the_threshold() -> None:
    scores, thresholds = np.array([0.5, 0.35, 0.95, 0.9]), np.array([0.5, 0.5, 0.5, 0.9])
    near = np.exp(-np.array([0.0, 0.15, 0.45, 0.0]) / 0.15)
    assert np.allclose(wanted(scores, thresholds), 0.5 / 4 + 0.5 * near / near.sum())


def test_the_rank_of_the_first_undrawn_run_gives_the_probabilities() -> None:
    numbers, wants = np.array([0.3, 0.1, 0.2, 0.4]), np.array([0.1, 0.1, 0.1, 0.7])
    at, chances = drawn(numbers, wants, np.ones(4, bool), 2)
    assert [*at] == [3, 1], "ranks are 3, 1, 2 and 0.57"
    assert np.allclose(chances, [0.2, 0.2, 0.2, 1.0]), "twice the weight, at most 1"
    every, sure = drawn(numbers, wants, np.ones(4, bool), 4)
    assert ([*every], [*sure]) == ([3, 1, 2, 0], [1.0] * 4)
    alike, _ = drawn(np.tile([0.75, 0.25, 0.5], 100), np.full(300, 0.5), np.ones(300, bool), 300)
    assert [*alike] == [*range(1, 300, 3), *range(2, 300, 3), *range(0, 300, 3)], "equal ranks keep their order"
