"""The embedder inside the package: one vector per word piece, summed. Needs numpy and no model server.

``embedded-1.npz`` was distilled from all-MiniLM-L6-v2 by ``collector/distill``. English, case-blind; word order and
negation do not count: a sense of the subject, not of the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.embedding._english import English
from pandaeval_collector.embedding._error import EmbedderError
from pandaeval_collector.embedding._protocol import Bands, Embedder, Known
from pandaeval_collector.embedding._table import Table
from pandaeval_collector.embedding._unit import unit_rows
from pandaeval_collector.embedding._wordpiece import WordPiece

SCHEME = "embedded"
LONGEST_TEXT = 5000
# Measured by `python tests/bench/coherence_pairs.py`.
BANDS = Bands(off=0.08, cut=0.22, on=0.26, sure=0.06)


class _Model:
    """What the file holds, about 9 MB; the pieces of words are their places in the table."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            vocabulary = archive["vocabulary"].tobytes().decode("utf-8").split("\n")
            self.table = Table(archive["rows"], archive["scales"])
        numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.pieces, self.english = WordPiece(numbers, self.table.place), English(numbers)


class EmbeddedEmbedder:
    """Implements :class:`Embedder`; reads its file at the first text. Equal bits in any batch and run."""

    id = "embedded-1"
    bands: Bands | None = BANDS

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape ``(len(texts), 256)``; of each text the first ``LONGEST_TEXT`` characters count.

        Text without letters or digits, or in a script that the model does not know, gives a row of zeros.
        """
        model = self._model
        sums = np.empty((len(texts), model.table.used.shape[1]), np.float32)
        for total, text in zip(sums, texts, strict=True):
            model.table.add(model.pieces.numbers(text[:LONGEST_TEXT]), total)
        return unit_rows(sums)

    def known(self, text: str) -> Known:
        """Whether it is English."""
        return self._model.english.known(text)

    @cached_property
    def _model(self) -> _Model:
        if self._path is not None:
            return _Model(self._path)
        with as_file(files(__package__) / f"{self.id}.npz") as path:
            return _Model(path)


def open(argument: str) -> Embedder:
    """The embedder; it takes no argument."""
    if argument:
        raise EmbedderError(f"embedder 'embedded' takes no argument, but got {argument!r}: write just 'embedded'")
    return EmbeddedEmbedder()
