"""The embedder inside the package: one vector per word piece, summed. Needs numpy and no model server.

``embedded-1.npz`` was distilled from all-MiniLM-L6-v2 by ``collector/distill``. English, case-blind; word order and
negation do not count: a sense of the subject, not of the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, KnownShare, without_argument
from pandaeval_collector.analysis.embedding._distilled import DistilledEmbedder, Table
from pandaeval_collector.analysis.embedding._wordpiece import English, Pieces, WordPiece

SCHEME = "embedded"
# Measured on pairs of requests and answers: labelled runs, recordings, and topics written for it.
BANDS = Bands(off=0.08, cut=0.22, on=0.26, sure=0.06)


class EmbeddedEmbedder(DistilledEmbedder):
    """Implements :class:`Embedder` for English, by a table of about 9 MB inside the package."""

    id = "embedded-1"
    bands: Bands | None = BANDS

    def pieces(self, held: Mapping[str, NDArray[Any]], numbers: Mapping[str, int], table: Table) -> Pieces:
        """Returns BERT's pieces."""
        return WordPiece(numbers, table.place)

    @cached_property
    def _english(self) -> English:
        return English(self._model[2])

    def known(self, text: str) -> KnownShare:
        """Returns how much of a text is known; a text that is not English is not."""
        return self._english.known(text)


def open(argument: str) -> Embedder:
    """Opens the embedder; it takes no argument."""
    without_argument(SCHEME, argument)
    return EmbeddedEmbedder()
