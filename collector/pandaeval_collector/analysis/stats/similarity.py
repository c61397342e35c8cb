"""Similarity of two vectors or sets, and formulas of coherence and loops."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Does an output repeat a recent output?
#
# The hybrid measure of PandaProbe's loop_detection: alike in meaning (cosine of embeddings) *and* in wording (Jaccard
# index of content words). Enumerating related things is alike in meaning only, and is no loop. Pure functions; safe on
# any thread.
DEFAULT_WINDOW = 3


class Direction:
    """A precomputed vector direction; false for zero vectors. Raises ``ValueError`` if not finite."""

    __slots__ = ("components", "size")

    def __init__(self, vector: Sequence[float] | NDArray[Any]) -> None:
        self.size = len(vector)
        self.components: NDArray[np.float64] | None = None
        values = np.asarray(vector, dtype=np.float64)
        largest = float(np.maximum.reduce(np.abs(values), initial=0.0))
        if not math.isfinite(largest):
            raise ValueError("a vector holds a component that is not finite")
        if largest != 0.0:
            values = values / largest  # squares of very large or small components would not fit a double
            self.components = values / math.sqrt(float(np.add.reduce(values * values)))

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return self.components is not None


Vector: TypeAlias = Sequence[float] | NDArray[Any] | Direction


def cosine(a: Vector, b: Vector) -> float | None:
    """Return the cosine of two vectors, -1..1; ``None`` for zero vectors.

    Raises ``ValueError`` if dimensions differ or components are not finite.
    """
    one = a if isinstance(a, Direction) else Direction(a)
    other = b if isinstance(b, Direction) else Direction(b)
    if one.size != other.size:
        raise ValueError(f"vectors of different dimensions: {one.size} and {other.size}")
    if one.components is None or other.components is None:
        return None
    # Not a BLAS dot product: its last bits depend on the processor, and scores must not.
    return min(1.0, max(-1.0, float(np.add.reduce(one.components * other.components))))


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Return shared / all elements, 0..1; 0 if both sets are empty."""
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else 0.0


# How near two texts are in meaning, as PandaProbe's coherence defines it.
def coherence(a: Vector, b: Vector) -> float:
    """Return 1 - cosine distance of an input's and its answer's embedding, clamped to 0..1.

    Measures topic alone. Compare only values of the same embedder. Raises ``ValueError`` for zero vectors,
    different dimensions or infinite components.
    """
    value = cosine(a, b)
    if value is None:
        raise ValueError("coherence of a zero vector is not defined")
    return max(0.0, value)


# Nobody changes these. They are not declared frozen because setting the fields of a frozen object takes four times as
# long, and there are many.


@dataclass(slots=True)
class OutputComparison:
    """Comparison of the current with an earlier output.

    ``index``: 0-based in ``previous``. ``cosine_similarity``: -1..1. Others: 0..1.
    """

    index: int
    cosine_similarity: float
    jaccard_similarity: float
    hybrid_score: float


@dataclass(slots=True)
class LoopDetection:
    """``score`` = 1 - ``max_hybrid``, 0..1; 1.0 without ``comparisons`` (oldest first)."""

    score: float
    max_hybrid: float
    comparisons: tuple[OutputComparison, ...]


def loop_detection(current: Any, previous: Sequence[Any], window: int = DEFAULT_WINDOW) -> LoopDetection:
    """Score how far ``current`` is from repeating the newest ``window`` of ``previous`` outputs (oldest first).

    hybrid = max(0, cosine) x Jaccard. An output has ``embedding`` (floats or :class:`Direction`) and ``tokens`` (see
    :func:`pandaeval_collector.analysis.stats.topic.content_tokens`), as object, mapping or pair. Raises ``ValueError``
    or ``TypeError`` for bad input.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1, not {window!r}")
    embedding, tokens = _parts(current)
    if len(previous) > 1 and not isinstance(embedding, Direction):
        embedding = Direction(embedding)
    first = max(0, len(previous) - window)
    comparisons = []
    for index in range(first, len(previous)):
        other_embedding, other_tokens = _parts(previous[index])
        alike = cosine(embedding, other_embedding) or 0.0
        shared = jaccard(tokens, other_tokens)
        comparisons.append(OutputComparison(index, alike, shared, max(0.0, alike) * shared))
    highest = max((comparison.hybrid_score for comparison in comparisons), default=0.0)
    return LoopDetection(1.0 - highest, highest, tuple(comparisons))


def _parts(output: Any) -> tuple[Vector, Set[str]]:
    embedding: Vector
    tokens: Collection[str]
    if isinstance(output, tuple | list) and len(output) == 2:
        embedding, tokens = output
    elif hasattr(output, "embedding") and hasattr(output, "tokens"):
        embedding, tokens = output.embedding, output.tokens
    elif isinstance(output, Mapping):
        embedding, tokens = output["embedding"], output["tokens"]
    else:
        raise TypeError(f"an output has an embedding and tokens; {type(output).__name__} has not")
    if isinstance(tokens, str):
        raise TypeError("tokens are a collection of words, not one string")
    return embedding, tokens if isinstance(tokens, frozenset) else frozenset(tokens)
