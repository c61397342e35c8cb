"""An embedder with a table inside the package: of a text, the rows of its pieces of words are summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import unit_rows
from pandaeval_collector.analysis.embedding._wordpiece import Pieces

LONGEST_TEXT = 5000


class DistilledEmbedder:
    """Base of the :class:`Embedder` implementations with such a table. Reads its file, ``ID.npz`` unless another
    ``path`` is given, at the first text. Equal bits in any batch and run."""

    id = ""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows of shape ``(len(texts), dimension)``, from the first ``LONGEST_TEXT`` characters of each text.

        Text without letters or digits, or in a script that the model does not know, gives a row of zeros.
        """
        rows, scales, pieces = self.model
        sums = np.empty((len(texts), rows.shape[1]), np.float32)
        for total, text in zip(sums, texts, strict=True):
            # Whole rows are added one after the other, in the order of the words: the same bits on every processor.
            numbers = pieces.numbers(text[:LONGEST_TEXT])
            np.add.reduce(rows[numbers] * scales[numbers, None], axis=0, out=total)
        return unit_rows(sums)

    @cached_property
    def model(self) -> tuple[NDArray[np.int8], NDArray[np.float32], Pieces]:
        """The contents of the file: a row per piece, each row's scale, and what splits words into pieces."""
        with (
            as_file(files(__package__) / f"{self.id}.npz") as own,
            np.load(self._path or own, allow_pickle=False) as held,
        ):
            names = held["vocabulary"].tobytes().decode("utf-8").split("\n")
            numbers = {piece: number for number, piece in enumerate(names)}
            return held["rows"], held["scales"], self.pieces(held, numbers)

    def pieces(self, held: Mapping[str, NDArray[Any]], numbers: Mapping[str, int]) -> Pieces:
        """Makes what splits words into pieces, by their ``numbers``."""
        raise NotImplementedError
