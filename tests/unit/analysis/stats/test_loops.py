"""Repetition and similarity of texts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.similarity import cosine, jaccard
from pandaeval_collector.stats import coherence, loop_detection

VECTORS = Path(__file__).parents[4].parent / "shared" / "vectors" / "loop_detection.json"


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.skipif(not VECTORS.exists(), reason="the shared vectors are not here")
def test_shared_vectors() -> None:
    for case in json.loads(VECTORS.read_text()):
        result = loop_detection(case["current"], case["previous"])
        assert (result.score, result.max_hybrid) == near((case["score"], case["max_hybrid"])), case


class TestLoopDetection:
    def test_a_first_output_is_no_loop(self) -> None:
        result = loop_detection(([1.0, 0.0], {"refund"}), [])
        assert (result.score, result.max_hybrid, result.comparisons) == (1.0, 0.0, ())

    def test_a_repeated_output_scores_zero(self) -> None:
        output = ([0.6, 0.8], {"refund", "sent"})
        assert loop_detection(output, [output]).score == near(0.0)

    def test_hybrid_is_cosine_times_jaccard(self) -> None:
        (comparison,) = loop_detection(([1.0, 0.0], {"a1", "b1"}), [([1.0, 1.0], {"b1", "c1"})]).comparisons
        assert comparison.cosine_similarity == near(math.sqrt(0.5))
        assert comparison.jaccard_similarity == near(1 / 3)
        assert comparison.hybrid_score == near(math.sqrt(0.5) / 3)

    def test_outputs_without_common_words_are_no_loop(self) -> None:
        assert loop_detection(([1.0], {"paris"}), [([1.0], {"rome"})]).score == 1.0

    def test_a_negative_cosine_is_reported_but_does_not_lower_the_score(self) -> None:
        result = loop_detection(([1.0, 0.0], {"aa"}), [([-1.0, 0.0], {"aa"})])
        assert result.score == 1.0
        assert result.comparisons[0].cosine_similarity == near(-1.0)

    def test_the_most_similar_earlier_output_sets_the_score(self) -> None:
        previous = [([1.0, 0.0], {"aa"}), ([0.0, 1.0], {"aa"}), ([0.6, 0.8], {"aa"})]
        result = loop_detection(([0.0, 1.0], {"aa", "bb"}), previous)
        assert [c.hybrid_score for c in result.comparisons] == near([0.0, 0.5, 0.4])
        assert (result.max_hybrid, result.score) == near((0.5, 0.5))

    def test_only_the_newest_three_outputs_are_compared_by_default(self) -> None:
        same = ([1.0], {"aa"})
        other = ([1.0], {"bb"})
        result = loop_detection(same, [same, other, other, other])
        assert [c.index for c in result.comparisons] == [1, 2, 3]
        assert result.score == 1.0
        assert loop_detection(same, [same, other, other, other], window=4).score == near(0.0)

    def test_zero_vector_has_cosine_zero(self) -> None:
        assert loop_detection(([0.0, 0.0], {"aa"}), [([1.0, 0.0], {"aa"})]).comparisons[0].cosine_similarity == 0.0

    def test_two_outputs_without_words_are_no_loop(self) -> None:
        assert loop_detection(([1.0], set()), [([1.0], frozenset())]).score == 1.0

    @pytest.mark.parametrize(
        "shape",
        [
            lambda e, t: (e, t),
            lambda e, t: {"embedding": e, "tokens": t},
            lambda e, t: SimpleNamespace(embedding=e, tokens=t),
            lambda e, t: (np.array(e, dtype=np.float32), list(t)),
        ],
    )
    def test_an_output_may_be_a_tuple_mapping_or_object(self, shape: Any) -> None:
        assert loop_detection(shape([3.0, 4.0], {"aa"}), [shape([6.0, 8.0], {"aa"})]).score == near(0.0)

    @pytest.mark.parametrize("bad", ["text", 3, ([1.0],), ([1.0], "words")])
    def test_an_output_of_another_shape_is_rejected(self, bad: Any) -> None:
        with pytest.raises(TypeError):
            loop_detection(([1.0], {"aa"}), [bad])

    def test_the_error_explains_the_shape_of_an_output(self) -> None:
        for bad in (SimpleNamespace(embedding=[1.0]), SimpleNamespace(tokens={"aa"})):
            with pytest.raises(TypeError, match=r"^an output has an embedding and tokens; SimpleNamespace has not$"):
                loop_detection(([1.0], {"aa"}), [bad])
        with pytest.raises(TypeError, match=r"^tokens are a collection of words, not one string$"):
            loop_detection(([1.0], "words"), [])

    def test_a_window_of_one_compares_only_the_newest_output(self) -> None:
        same, other = ([1.0], {"aa"}), ([1.0], {"bb"})
        assert [c.index for c in loop_detection(same, [same, other], 1).comparisons] == [1]

    @pytest.mark.parametrize("window", [0, -1])
    def test_a_window_below_one_is_refused(self, window: int) -> None:
        with pytest.raises(ValueError, match="window"):
            loop_detection(([1.0], {"aa"}), [], window)


class TestSimilarity:
    def test_a_cosine_never_leaves_its_range(self) -> None:
        chance = np.random.default_rng(2)
        for row in chance.normal(size=(300, 7)):
            assert -1.0 <= (cosine(row, -row) or 0.0) <= (cosine(row, row) or 0.0) <= 1.0

    def test_dimensions_must_agree(self) -> None:
        with pytest.raises(ValueError, match="dimensions"):
            cosine([1.0], [1.0, 2.0])

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_components_must_be_finite(self, bad: float) -> None:
        with pytest.raises(ValueError, match="finite"):
            cosine([1.0, bad], [1.0, 2.0])

    @pytest.mark.parametrize("scale", [1e-300, 1e300])
    def test_vector_length_does_not_change_the_cosine(self, scale: float) -> None:
        assert cosine([3.0 * scale, 4.0 * scale], [4.0, 3.0]) == near(0.96)

    def test_empty_vectors_have_no_cosine(self) -> None:
        assert cosine([], []) is None

    def test_jaccard_is_the_shared_part_of_the_union(self) -> None:
        assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
        assert jaccard(set(), {"a"}) == 0.0


class TestCoherence:
    def test_is_the_cosine(self) -> None:
        assert coherence([3.0, 4.0], [4.0, 3.0]) == near(0.96)

    def test_a_negative_cosine_gives_coherence_zero(self) -> None:
        assert coherence([1.0, 0.0], [-1.0, 0.5]) == 0.0

    def test_a_zero_vector_has_no_coherence(self) -> None:
        with pytest.raises(ValueError, match="zero vector"):
            coherence([0.0, 0.0], [1.0, 0.0])
