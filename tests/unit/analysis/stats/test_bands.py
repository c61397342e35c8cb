"""Score bands: each limit belongs to the better side, within 1e-9."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pandaeval_collector.analysis.stats.session import (
    assessment,
    consistency_band,
    reliability_band,
    session_profile,
)

RELIABILITY = ("highly_reliable", "generally_reliable", "moderate_risk", "elevated_risk", "high_risk")
CONSISTENCY = ("highly_consistent", "generally_consistent", "moderate_instability", "high_instability", "unstable")
LIMITS = (0.9, 0.7, 0.5, 0.3)


def _under(limit: float) -> tuple[float, float]:
    """Return the smallest score at the limit, and the largest below."""
    reached = limit - 1e-9
    return reached, math.nextafter(reached, 0.0)


@pytest.mark.parametrize(("band", "words"), [(reliability_band, RELIABILITY), (consistency_band, CONSISTENCY)])
@pytest.mark.parametrize("at", range(4))
def test_a_limit_belongs_to_the_better_band(band: Callable[[float], str], words: tuple[str, ...], at: int) -> None:
    reached, missed = _under(LIMITS[at])
    found = [band(score) for score in (LIMITS[at], reached, missed, LIMITS[at] - 1e-3)]
    assert found == [words[at], words[at], words[at + 1], words[at + 1]]
    assert (band(1.0), band(0.0)) == (words[0], words[-1])


REACHED, MISSED = _under(0.7)


@pytest.mark.parametrize(
    ("reliability", "consistency", "word"),
    [
        (0.7, 0.7, "safe_and_smooth"),
        (REACHED, REACHED, "safe_and_smooth"),
        (REACHED, MISSED, "uneven"),
        (MISSED, REACHED, "consistently_mediocre"),
        (MISSED, MISSED, "unreliable_and_unstable"),
    ],
)
def test_the_session_profile_depends_on_both_scores(reliability: float, consistency: float, word: str) -> None:
    assert session_profile(reliability, consistency) == word


@pytest.mark.parametrize(
    ("at_k", "pow_k", "word"),
    [
        (None, 0.9, None),
        (0.9, None, None),
        (0.5, None, None),
        (0.7 - 1e-9, 0.0, None),
        (math.nextafter(0.7 - 1e-9, 0.0), 0.0, "needs_improvement"),
        (0.95 + 1e-9, 1.0, None),
        (math.nextafter(0.95 + 1e-9, 1.0), 1.0, "reliable"),
        (1.0, 0.7, None),
        (1.0, 0.7 + 1e-9, None),
        (1.0, math.nextafter(0.7 + 1e-9, 1.0), "reliable"),
        (1.0, 0.5, None),
        (1.0, 0.5 - 1e-9, None),
        (1.0, math.nextafter(0.5 - 1e-9, 0.0), "inconsistent"),
    ],
)
def test_the_assessment_is_set_only_beyond_its_limits(
    at_k: float | None, pow_k: float | None, word: str | None
) -> None:
    assert assessment(at_k, pow_k) == word


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
def test_a_score_outside_0_to_1_is_rejected(score: float) -> None:
    for ask in (
        lambda: reliability_band(score),
        lambda: consistency_band(score),
        lambda: session_profile(score, 1.0),
        lambda: session_profile(1.0, score),
        lambda: assessment(score, 1.0),
        lambda: assessment(1.0, score),
    ):
        with pytest.raises(ValueError, match=r"0\.\.1"):
            ask()
