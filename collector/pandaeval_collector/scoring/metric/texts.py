"""The texts that metrics compare, as vectors and as words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, Bands, KnownShare
from pandaeval_collector.analysis.stats.similarity import Direction
from pandaeval_collector.analysis.stats.tokens import content_tokens


@dataclass(slots=True)
class Texts:
    """The vectors of the texts that metrics asked for, computed in one batch for many traces. One thread.

    ``rows[text]``: shape (dim,), float32, length 1 or all zeros. ``chunked``: the texts that were embedded in parts.
    ``embedder``, ``bands``: the id of the embedder and what its cosines mean. ``lost``: why there are no vectors; a
    metric that asks for one gets this exception. ``known``: how much of a text the embedder knows."""

    rows: Mapping[str, NDArray[np.float32]]
    chunked: Collection[str]
    embedder: str
    bands: Bands | None
    lost: Exception | None = None
    known: Callable[[str], KnownShare] = lambda text: ALL_KNOWN
    _directions: dict[str, Direction] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Mapping[str, NDArray[np.float32]],
        chunked: Collection[str],
        embedder: str,
        bands: Bands | None,
        known: Callable[[str], KnownShare],
    ) -> Texts:
        """Makes them with the directions of all ``rows``, computed at once."""
        texts = cls(rows, chunked, embedder, bands, known=known)
        if rows:
            vectors = np.stack([*rows.values()])
            # With a vector that is not finite, each direction is computed when a metric asks for it: only the metric
            # that asks for the bad one fails.
            if np.isfinite(vectors).all():
                texts._directions.update(zip(rows, Direction.of_rows(vectors), strict=True))
        return texts

    def direction(self, text: str) -> Direction:
        """The direction of the text's vector, false for a row of zeros; computed once. Raises ``lost`` where there are
        no vectors, and ``KeyError`` for a text that no metric asked to embed."""
        found = self._directions.get(text)
        if found is None:
            if self.lost is not None:
                raise self.lost
            found = self._directions[text] = Direction(self.rows[text])
        return found

    def know(self, text: str, direction: Direction, words: frozenset[str]) -> None:
        """Takes over the direction and the words of a text that was embedded before, such as an earlier answer."""
        self._directions[text], self._words[text] = direction, words

    def words(self, text: str) -> frozenset[str]:
        """The content words of the text; computed once."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = content_tokens(text)
        return found
