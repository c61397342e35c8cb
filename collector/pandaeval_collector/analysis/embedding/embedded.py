"""Built-in English embedder: sum of word piece vectors, with numpy only.

``embedded-1.npz`` was distilled from all-MiniLM-L6-v2 by ``collector/distill``. It measures topic, not truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, KnownShare, unit_rows, without_argument
from pandaeval_collector.analysis.embedding._wordpiece import English, Pieces, WordPiece

SCHEME = "embedded"
# Measured on pairs of requests and answers: labelled runs, recordings, and texts written for the measurement.
BANDS = Bands(off=0.08, cut=0.22, on=0.26, sure=0.02)
LONGEST_TEXT = 5000


class Table:
    """Rows per piece: int8 with a float32 scale. ``used``: needed rows as float32, indexed by :meth:`place`."""

    def __init__(self, rows: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._rows, self._scales = rows, scales
        self._places: dict[int, int] = {}
        self.used: NDArray[np.float32] = np.empty(rows.shape, np.float32)  # unwritten pages take no memory

    def place(self, number: int) -> int:
        """Return the index in ``used`` of piece ``number``; adds it if new."""
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = len(self._places)
            np.multiply(self._rows[number].astype(np.float32), self._scales[number], out=self.used[place])
        return place

    def add(self, places: NDArray[np.int32], total: NDArray[np.float32]) -> None:
        """Set ``total`` to the sum of the rows at ``places``, added in this order for equal bits on every processor."""
        np.add.reduce(self.used.take(places, axis=0), axis=0, out=total)


class DistilledEmbedder:
    """Base of embedders with a :class:`Table`, which is read at the first text from ``path`` or the package."""

    id = ""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of shape ``(len(texts), dimension)``, from the first ``LONGEST_TEXT`` characters."""
        table, pieces, _ = self._model
        sums = np.empty((len(texts), table.used.shape[1]), np.float32)
        for total, text in zip(sums, texts, strict=True):
            table.add(pieces.numbers(text[:LONGEST_TEXT]), total)
        return unit_rows(sums)

    @cached_property
    def _model(self) -> tuple[Table, Pieces, Mapping[str, int]]:
        with (
            as_file(files(__package__) / f"{self.id}.npz") as own,
            np.load(self._path or own, allow_pickle=False) as held,
        ):
            names = held["vocabulary"].tobytes().decode("utf-8").split("\n")
            table, numbers = Table(held["rows"], held["scales"]), {piece: number for number, piece in enumerate(names)}
            return table, self.pieces(held, numbers, table), numbers

    def pieces(self, held: Mapping[str, NDArray[Any]], numbers: Mapping[str, int], table: Table) -> Pieces:
        raise NotImplementedError


class EmbeddedEmbedder(DistilledEmbedder):
    """:class:`Embedder` for English, with a packaged 7 MB table."""

    id = "embedded-1"
    bands: Bands | None = BANDS

    def pieces(self, held: Mapping[str, NDArray[Any]], numbers: Mapping[str, int], table: Table) -> Pieces:
        return WordPiece(numbers, table.place)

    @cached_property
    def _english(self) -> English:
        return English(self._model[2])

    def known(self, text: str) -> KnownShare:
        return self._english.known(text)


def open(argument: str) -> Embedder:
    without_argument(SCHEME, argument)
    return EmbeddedEmbedder()
