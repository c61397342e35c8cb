"""Does an output repeat one of the outputs just before it?

The hybrid measure of PandaProbe's loop_detection: alike in meaning (cosine of embeddings) *and* in wording (Jaccard
index of content words). Enumerating related things is alike in meaning only, and is no loop.
Pure functions; safe on any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.stats.similarity import Direction, Vector, cosine, jaccard

DEFAULT_WINDOW = 3


# Nobody changes these. They are not declared frozen because setting the fields of a frozen object takes four times as
# long, and there are many.


@dataclass(slots=True)
class OutputComparison:
    """The current output against one earlier one. ``index``: 0-based position in ``previous``. ``cosine_similarity``
    in -1..1 (0 for a zero vector), ``jaccard_similarity`` and ``hybrid_score`` in 0..1."""

    index: int
    cosine_similarity: float
    jaccard_similarity: float
    hybrid_score: float


@dataclass(slots=True)
class LoopDetection:
    """``score`` = 1 - ``max_hybrid``, in 0..1; 1.0 without comparisons. ``comparisons`` run oldest first."""

    score: float
    max_hybrid: float
    comparisons: tuple[OutputComparison, ...]


def loop_detection(current: Any, previous: Sequence[Any], window: int = DEFAULT_WINDOW) -> LoopDetection:
    """How far ``current`` is from repeating the newest ``window`` of the ``previous`` outputs (oldest first).

    An output is an object with ``embedding`` and ``tokens``, a mapping with these keys, or a pair of the two:
    a sequence of finite floats (or its :class:`Direction`), all of one dimension, and a collection of words (see
    :func:`pandaeval_collector.analysis.stats.tokens.content_tokens`). hybrid = max(0, cosine) x Jaccard.

    Raises ``ValueError`` for a window below 1, dimensions that differ or components that are not finite, and
    ``TypeError`` for an output of another shape.
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
