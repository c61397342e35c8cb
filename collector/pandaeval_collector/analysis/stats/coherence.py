"""How near two texts are in meaning, as PandaProbe's coherence defines it."""

from __future__ import annotations

from pandaeval_collector.analysis.stats.similarity import Vector, cosine


def coherence(a: Vector, b: Vector) -> float:
    """1 - cosine distance of two embeddings (of an input and of its answer), clamped to 0..1.

    0 is unrelated or opposed, 1 the same direction; the two may change places. It measures the topic alone: a denial
    scores like an assertion, and an answer that echoes the question scores 1. What counts as a good value depends on
    the embedder, so compare only values of one embedder.

    Raises ``ValueError`` when a vector is all zeros (nothing was embedded, so there is no direction to compare), when
    the dimensions differ, or when a component is not finite.
    """
    value = cosine(a, b)
    if value is None:
        raise ValueError("coherence of a zero vector is not defined")
    return max(0.0, value)
