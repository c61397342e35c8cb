"""Invariants of the formulas."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.stats import (
    agent_consistency,
    agent_reliability,
    coherence,
    consistency_band,
    content_tokens,
    loop_detection,
    reliability_band,
    session_profile,
)

NAMES = ("confidence", "loop_detection", "tool_correctness", "coherence")
unit = st.floats(0.0, 1.0)
signals = st.dictionaries(st.sampled_from((*NAMES, "response", "tool_loop")), unit)
sessions = st.lists(signals, max_size=40)
weights = st.none() | st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 3.0))
component = st.floats(-100.0, 100.0).map(lambda value: round(value, 6))
words = st.frozensets(st.sampled_from(["refund", "order", "price", "hotel", "not"]))
outputs = st.tuples(st.lists(component, min_size=3, max_size=3), words)
EITHER = pytest.mark.parametrize("score", [agent_reliability, agent_consistency])


@EITHER
@given(traces=sessions, weights=weights)
def test_scores_are_within_0_and_1_and_count_their_traces(score: Any, traces: Any, weights: Any) -> None:
    result = score(traces, weights)
    assert 0.0 <= result.score <= 1.0
    assert 0 <= result.evaluated <= result.total == len(traces)
    assert len(result.positions) == len(result.components) == result.evaluated
    assert result.evaluated or result.score == 1.0


@EITHER
@given(traces=sessions, weights=weights, seed=st.integers())
def test_scores_do_not_depend_on_the_order_of_traces(score: Any, traces: Any, weights: Any, seed: int) -> None:
    shuffled = list(traces)
    random.Random(seed).shuffle(shuffled)
    assert score(shuffled, weights).score == score(traces, weights).score


@EITHER
@given(traces=sessions.filter(bool), weights=weights, data=st.data())
def test_a_worse_signal_never_raises_the_score(score: Any, traces: Any, weights: Any, data: Any) -> None:
    index = data.draw(st.integers(0, len(traces) - 1))
    worse = [dict(trace) for trace in traces]
    for name in worse[index]:
        worse[index][name] = data.draw(st.floats(0.0, worse[index][name]))
    assert score(worse, weights).score <= score(traces, weights).score + 1e-12


@given(traces=sessions.filter(bool), weights=weights)
def test_a_bad_response_signal_never_raises_reliability(traces: Any, weights: Any) -> None:
    before = agent_reliability(traces, weights)
    for index in before.positions:
        changed = [*traces[:index], {**traces[index], "response": 0.0}, *traces[index + 1 :]]
        assert agent_reliability(changed, weights).score <= before.score


@given(traces=sessions)
def test_reliability_is_between_that_of_the_worst_and_of_the_best_trace(traces: Any) -> None:
    result = agent_reliability(traces)
    if result.evaluated:
        assert result.mean_top_k_risk <= result.max_risk + 1e-12
        best = max(0.0, 1.0 - min(result.per_trace_risk))
        assert 1.0 - result.max_risk - 1e-12 <= result.score <= best + 1e-12


@given(reliability=unit, consistency=unit)
def test_every_score_has_a_band_and_a_profile(reliability: float, consistency: float) -> None:
    assert reliability_band(reliability)
    assert consistency_band(consistency)
    assert session_profile(reliability, consistency)


@given(current=outputs, previous=st.lists(outputs, max_size=6), window=st.integers(1, 5))
def test_loop_score_and_similarities_are_within_range(current: Any, previous: Any, window: int) -> None:
    result = loop_detection(current, previous, window)
    assert 0.0 <= result.score <= 1.0
    assert len(result.comparisons) == min(window, len(previous))
    for comparison in result.comparisons:
        assert -1.0 <= comparison.cosine_similarity <= 1.0
        assert 0.0 <= comparison.hybrid_score <= comparison.jaccard_similarity <= 1.0


@given(one=outputs, other=outputs)
def test_loop_score_is_symmetric(one: Any, other: Any) -> None:
    assert loop_detection(one, [other]).score == loop_detection(other, [one]).score


@given(current=outputs, previous=st.lists(outputs, max_size=6))
def test_a_longer_window_never_raises_the_loop_score(current: Any, previous: Any) -> None:
    scores = [loop_detection(current, previous, window).score for window in (1, 2, 3, 6)]
    assert scores == sorted(scores, reverse=True)


nonzero = st.lists(component, min_size=3, max_size=3).filter(any)


@given(a=nonzero, b=nonzero, scale=st.floats(0.001, 1000.0))
def test_coherence_is_symmetric_and_independent_of_vector_length(a: list[float], b: list[float], scale: float) -> None:
    assert 0.0 <= coherence(a, b) == coherence(b, a) <= 1.0
    assert coherence(a, a) == pytest.approx(1.0, abs=1e-12)
    assert coherence([scale * value for value in a], b) == pytest.approx(coherence(a, b), abs=1e-9)


@given(text=st.text(max_size=300))
def test_tokenizing_tokens_again_changes_nothing(text: str) -> None:
    tokens = content_tokens(text)
    assert content_tokens(" ".join(sorted(tokens))) == tokens


@given(one=st.text(max_size=100), other=st.text(max_size=100))
def test_tokens_do_not_depend_on_neighbouring_text(one: str, other: str) -> None:
    assert content_tokens(f"{one}\n{other}") == content_tokens(one) | content_tokens(other)
