"""How people read the two session scores: a band for each, and one word for the pair; and a pair of pass@k and pass^k.

The bands are those of PandaProbe's session metrics, half-open: 0.9 and above, [0.7, 0.9), [0.5, 0.7), [0.3, 0.5),
below 0.3. A score within 1e-9 of a limit counts as having reached it, as it does for thresholds.
"""

from __future__ import annotations

_TOLERANCE = 1e-9
_LIMITS = (0.9, 0.7, 0.5, 0.3)
_RELIABILITY = ("highly_reliable", "generally_reliable", "moderate_risk", "elevated_risk", "high_risk")
_CONSISTENCY = ("highly_consistent", "generally_consistent", "moderate_instability", "high_instability", "unstable")

PROFILE_CUT = 0.7
"""From here on the source calls a session reliable or consistent; below, it speaks of risk and instability. The pass
mark of 0.5 would call a session "safe" whose band says "some traces show concerning behaviour"."""


def reliability_band(score: float) -> str:
    """``highly_reliable``, ``generally_reliable``, ``moderate_risk``, ``elevated_risk`` or ``high_risk``.

    Raises ``ValueError`` for a score outside 0..1.
    """
    return _RELIABILITY[_band(score)]


def consistency_band(score: float) -> str:
    """``highly_consistent``, ``generally_consistent``, ``moderate_instability``, ``high_instability`` or ``unstable``.

    Raises ``ValueError`` for a score outside 0..1.
    """
    return _CONSISTENCY[_band(score)]


def session_profile(reliability: float, consistency: float) -> str:
    """The source's four-way reading of the pair; a score is high from 0.7 on.

    ``safe_and_smooth`` (both high), ``uneven`` (reliable: no catastrophe, but uneven), ``consistently_mediocre``
    (consistent: predictable, but not reliable), ``unreliable_and_unstable``. Raises ``ValueError`` outside 0..1.
    """
    high = _is_high(reliability), _is_high(consistency)
    return {
        (True, True): "safe_and_smooth",
        (True, False): "uneven",
        (False, True): "consistently_mediocre",
        (False, False): "unreliable_and_unstable",
    }[high]


def assessment(pass_at_k: float | None, pass_pow_k: float | None) -> str | None:
    """How the agentic metric's "agent quality assessment" reads pass@k and pass^k: ``reliable`` (above 0.95 and above
    0.7), ``inconsistent`` (above 0.95 and below 0.5: it can succeed, and one cannot rely on it) or
    ``needs_improvement`` (pass@k below 0.7). ``None`` in the gaps between these, for which the source has no word, and
    where a share is unknown."""
    if pass_at_k is None or pass_pow_k is None:
        return None
    if _checked(pass_at_k) < 0.7 - _TOLERANCE:
        return "needs_improvement"
    if pass_at_k <= 0.95 + _TOLERANCE:
        return None
    if _checked(pass_pow_k) > 0.7 + _TOLERANCE:
        return "reliable"
    return "inconsistent" if pass_pow_k < 0.5 - _TOLERANCE else None


def _is_high(score: float) -> bool:
    return _checked(score) >= PROFILE_CUT - _TOLERANCE


def _band(score: float) -> int:
    return sum(_checked(score) < limit - _TOLERANCE for limit in _LIMITS)


def _checked(score: float) -> float:
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a score lies in 0..1, not {score!r}")
    return score
