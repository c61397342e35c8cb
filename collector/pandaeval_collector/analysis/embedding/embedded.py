"""The embedder inside the package: one vector per word piece, summed. Needs numpy and no model server.

``embedded-1.npz`` was distilled from all-MiniLM-L6-v2 by ``collector/distill``. English, case-blind; word order and
negation do not count: a sense of the subject, not of the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pandaeval_collector.analysis.embedding import Bands, Embedder, EmbedderError, KnownShare
from pandaeval_collector.analysis.embedding._distilled import DistilledEmbedder, Table
from pandaeval_collector.analysis.embedding._wordpiece import English, WordPiece

SCHEME = "embedded"
# Measured by `python tests/bench/coherence_pairs.py`.
BANDS = Bands(off=0.08, cut=0.22, on=0.26, sure=0.06)


class _Model:
    """The contents of the file, about 9 MB. Pieces of words are indexes in the table."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            vocabulary = archive["vocabulary"].tobytes().decode("utf-8").split("\n")
            self.table = Table(archive["rows"], archive["scales"])
        numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.pieces, self.english = WordPiece(numbers, self.table.place), English(numbers)


class EmbeddedEmbedder(DistilledEmbedder[_Model]):
    """Implements :class:`Embedder` for English, by a table inside the package."""

    id = "embedded-1"
    bands: Bands | None = BANDS

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(_Model, path)

    def known(self, text: str) -> KnownShare:
        """Returns how much of a text is known; a text that is not English is not."""
        return self._model.english.known(text)


def open(argument: str) -> Embedder:
    """Opens the embedder; it takes no argument."""
    if argument:
        raise EmbedderError(f"embedder 'embedded' takes no argument, but got {argument!r}: write just 'embedded'")
    return EmbeddedEmbedder()
