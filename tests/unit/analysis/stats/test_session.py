"""Session scores against references."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.session import DEFAULT_WEIGHTS, clamp01, merged_weights
from pandaeval_collector.stats import (
    agent_consistency,
    agent_reliability,
    consistency_band,
    reliability_band,
    session_profile,
)

VECTORS = Path(__file__).parents[4].parent / "shared" / "vectors" / "session.json"
CLOSE = 1e-9


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=0, abs=CLOSE)


def with_risks(*risks: float) -> list[dict[str, float]]:
    return [{"confidence": 1.0 - risk} for risk in risks]


@pytest.mark.skipif(not VECTORS.exists(), reason="the shared vectors are not here")
@pytest.mark.parametrize("score", [agent_reliability, agent_consistency])
def test_shared_vectors(score: Any) -> None:
    cases = json.loads(VECTORS.read_text())
    for case in cases:
        result = score(case["traces"], case["weights"])
        for name, expected in case[score.__name__].items():
            actual = getattr(result, name)
            assert (list(actual) if isinstance(expected, list) else actual) == near(expected), (name, case)


class TestReliability:
    def test_without_traces_the_score_is_1_and_evaluated_is_0(self) -> None:
        result = agent_reliability([])
        assert (result.score, result.evaluated, result.total) == (1.0, 0, 0)

    def test_traces_without_signals_are_skipped_not_counted_as_good(self) -> None:
        result = agent_reliability([{}, {"confidence": 0.4}, {}])
        assert (result.evaluated, result.total, result.positions) == (1, 3, (1,))
        assert result.score == near(0.4)

    def test_a_trace_is_as_bad_as_its_worst_weighted_signal(self) -> None:
        result = agent_reliability(
            [{"confidence": 0.88, "loop_detection": 0.95, "tool_correctness": 0.7, "coherence": 0.97}]
        )
        assert result.per_trace_risk == near((0.24,))  # tool: 0.8 x 0.3
        assert result.components[0] == near(
            {"confidence_risk": 0.12, "loop_risk": 0.05, "tool_risk": 0.3, "coherence_risk": 0.03, "step_risk": 0.24}
        )

    def test_missing_signals_leave_no_component(self) -> None:
        (component,) = agent_reliability([{"coherence": 0.5}]).components
        assert component == near({"coherence_risk": 0.5, "step_risk": 0.5})

    @pytest.mark.parametrize(
        ("n", "k"), [(1, 1), (6, 1), (7, 2), (13, 2), (14, 3), (20, 3), (21, 4), (47, 8), (100, 15)]
    )
    def test_k_is_15_percent_of_the_traces_rounded_up(self, n: int, k: int) -> None:
        assert agent_reliability(with_risks(*[0.1] * n)).k == k

    def test_raw_risk_blends_the_tail_with_the_worst(self) -> None:
        result = agent_reliability(with_risks(0.8, 0.1, 0.2, 0.6, 0.1, 0.1, 0.1))
        assert (result.k, result.mean_top_k_risk, result.max_risk) == (2, near(0.7), near(0.8))
        assert result.raw_risk == near(0.9 * 0.7 + 0.1 * 0.8)
        assert result.score == near(0.29)

    def test_one_catastrophe_in_fourteen_traces_scores_six_tenths(self) -> None:
        assert agent_reliability(with_risks(1.0, *[0.0] * 13)).score == near(0.6)

    def test_flagged_holds_evaluated_traces_with_a_risk_above_one_half(self) -> None:
        result = agent_reliability([{}, *with_risks(0.5, 0.51), {}, *with_risks(0.9)])
        assert result.flagged == (1, 2)
        assert [result.positions[index] for index in result.flagged] == [2, 4]

    def test_risk_above_one_is_kept_and_the_score_is_clamped(self) -> None:
        result = agent_reliability(with_risks(0.9), {"confidence": 2.0})
        assert (result.per_trace_risk, result.raw_risk, result.score) == (near((1.8,)), near(1.8), 0.0)

    def test_both_scores_report_the_weights_that_were_used(self) -> None:
        used = DEFAULT_WEIGHTS | {"coherence": 0.5}
        for of in (agent_reliability, agent_consistency):
            for traces in ([], with_risks(0.5)):
                assert of(traces, {"coherence": 0.5}).weights == used

    def test_a_missing_signal_does_not_hide_later_signals(self) -> None:
        (component,) = agent_reliability([{"confidence": None, "coherence": 0.25}]).components
        assert component == near({"coherence_risk": 0.75, "step_risk": 0.75})


class TestNumbers:
    @pytest.mark.parametrize(("value", "within"), [(-0.5, 0.0), (0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (1.5, 1.0)])
    def test_a_value_is_clamped_to_0_and_1(self, value: float, within: float) -> None:
        assert clamp01(value) == within

    @pytest.mark.parametrize("weight", [0, 2, np.float64(2.0), 1e100])
    def test_weights_from_0_to_1e100_are_accepted(self, weight: float) -> None:
        assert merged_weights({"coherence": weight}) == DEFAULT_WEIGHTS | {"coherence": float(weight)}

    @pytest.mark.parametrize("weight", [-0.1, 1.1e100, math.nan, math.inf, "2", None])
    def test_negative_huge_and_non_numeric_weights_are_rejected(self, weight: Any) -> None:
        with pytest.raises(ValueError, match="coherence"):
            merged_weights({"coherence": weight})


class TestExtraSignals:
    def test_a_bad_ending_outweighs_good_signals(self) -> None:
        result = agent_reliability([{"confidence": 0.9, "response": 0.0}])
        assert result.score == 0.0
        assert result.components[0]["response_risk"] == 1.0

    def test_tool_loop_has_full_weight(self) -> None:
        assert agent_reliability([{"confidence": 0.9, "tool_loop": 0.25}]).score == near(0.25)

    def test_extra_signals_without_risk_are_left_out(self) -> None:
        result = agent_reliability([{"response": 1.0, "tool_loop": 1.0}, {"confidence": 0.5, "response": 1.0}])
        assert result.evaluated == 1
        assert "response_risk" not in result.components[0]

    def test_a_trace_with_only_an_extra_signal_is_evaluated(self) -> None:
        assert agent_reliability([{"response": 0.0}]).evaluated == 1

    def test_consistency_ignores_extra_signals(self) -> None:
        assert agent_consistency([{"confidence": 0.9, "response": 0.0, "tool_loop": 0.0}]).score == near(0.9)


class TestConsistency:
    def test_only_traces_with_confidence_are_evaluated(self) -> None:
        result = agent_consistency([{"coherence": 0.0}, {"confidence": 0.7}, {}])
        assert (result.evaluated, result.total, result.positions, result.score) == (1, 3, (1,), near(0.7))

    def test_without_confidence_the_score_is_1_and_evaluated_is_0(self) -> None:
        result = agent_consistency([{"coherence": 0.1}])
        assert (result.score, result.evaluated, result.total) == (1.0, 0, 1)

    def test_other_risks_amplify_uncertainty(self) -> None:
        result = agent_consistency(
            [{"confidence": 0.88, "loop_detection": 0.95, "tool_correctness": 0.92, "coherence": 0.97}]
        )
        assert result.situational_penalty == near((0.144,))  # 0.05 + 0.8 x 0.08 + 0.03
        assert result.weighted_uncertainty == near((0.13728,))  # 1.144 x 0.12
        assert result.components[0]["weighted_uncertainty"] == near(0.13728)
        assert result.score == near(0.86272)

    def test_instability_is_the_root_mean_square(self) -> None:
        result = agent_consistency([{"confidence": 0.7}, {"confidence": 0.6}])
        assert result.raw_instability == near(math.sqrt((0.09 + 0.16) / 2))

    def test_full_confidence_hides_other_risks(self) -> None:
        assert agent_consistency([{"confidence": 1.0, "tool_correctness": 0.0, "coherence": 0.0}]).score == 1.0

    def test_score_does_not_fall_below_zero(self) -> None:
        result = agent_consistency([{"confidence": 0.0, "tool_correctness": 0.0, "coherence": 0.0}])
        assert (result.raw_instability, result.score) == (near(2.8), 0.0)


@pytest.mark.parametrize("score", [agent_reliability, agent_consistency])
class TestInputs:
    def test_partial_override_keeps_the_other_defaults(self, score: Any) -> None:
        assert score([], {"tool_correctness": 0.5}).weights == {
            "confidence": 1.0,
            "loop_detection": 1.0,
            "tool_correctness": 0.5,
            "coherence": 1.0,
        }

    @pytest.mark.parametrize("weights", [None, {}])
    def test_no_override_gives_the_defaults(self, score: Any, weights: Any) -> None:
        assert score([], weights).weights["tool_correctness"] == 0.8

    @pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, -math.inf, "1", None])
    def test_the_error_names_an_invalid_weight(self, score: Any, bad: Any) -> None:
        with pytest.raises(ValueError, match="coherence"):
            score([], {"coherence": bad})

    @pytest.mark.parametrize("key", ["loop", "error", "tool_loop"])
    def test_the_error_names_an_unknown_weight(self, score: Any, key: str) -> None:
        with pytest.raises(ValueError, match=f"'{key}'"):
            score([], {key: 1.0})

    def test_all_zero_weights_are_refused(self, score: Any) -> None:
        zero = dict.fromkeys(("confidence", "loop_detection", "tool_correctness", "coherence"), 0.0)
        with pytest.raises(ValueError, match="all zero"):
            score([], zero)

    def test_weight_zero_still_counts_as_present(self, score: Any) -> None:
        result = score([{"confidence": 0.2}], {"confidence": 0.0})
        assert (result.evaluated, result.score) == (1, 1.0)

    @pytest.mark.parametrize("bad", [-0.001, 1.001, math.nan, math.inf, "0.5"])
    def test_the_error_names_a_signal_outside_its_range(self, score: Any, bad: Any) -> None:
        with pytest.raises(ValueError, match="tool_correctness"):
            score([{"confidence": 0.5}, {"tool_correctness": bad}])

    def test_the_error_names_an_unknown_signal(self, score: Any) -> None:
        with pytest.raises(ValueError, match="loops"):
            score([{"loops": 0.5}])

    def test_none_is_a_missing_signal(self, score: Any) -> None:
        assert score([{"confidence": None}]).evaluated == 0


class TestBands:
    @pytest.mark.parametrize(
        ("score", "reliability", "consistency"),
        [
            (1.0, "highly_reliable", "highly_consistent"),
            (0.9, "highly_reliable", "highly_consistent"),
            (0.8999, "generally_reliable", "generally_consistent"),
            (0.7, "generally_reliable", "generally_consistent"),
            (0.6999, "moderate_risk", "moderate_instability"),
            (0.5, "moderate_risk", "moderate_instability"),
            (0.4999, "elevated_risk", "high_instability"),
            (0.3, "elevated_risk", "high_instability"),
            (0.2999, "high_risk", "unstable"),
            (0.0, "high_risk", "unstable"),
        ],
    )
    def test_a_score_at_a_limit_belongs_to_the_better_band(
        self, score: float, reliability: str, consistency: str
    ) -> None:
        assert (reliability_band(score), consistency_band(score)) == (reliability, consistency)

    def test_a_score_a_rounding_error_below_a_limit_is_at_the_limit(self) -> None:
        assert reliability_band(0.9 - 1e-15) == "highly_reliable"

    @pytest.mark.parametrize(
        ("reliability", "consistency", "profile"),
        [
            (0.7, 0.7, "safe_and_smooth"),
            (0.95, 0.69, "uneven"),
            (0.69, 0.95, "consistently_mediocre"),
            (0.2, 0.1, "unreliable_and_unstable"),
        ],
    )
    def test_two_scores_give_one_of_four_profiles(self, reliability: float, consistency: float, profile: str) -> None:
        assert session_profile(reliability, consistency) == profile

    @pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
    def test_a_value_outside_0_to_1_is_rejected(self, bad: float) -> None:
        with pytest.raises(ValueError, match="score"):
            reliability_band(bad)
        with pytest.raises(ValueError, match="score"):
            session_profile(1.0, bad)
