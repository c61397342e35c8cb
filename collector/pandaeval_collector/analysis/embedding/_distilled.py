"""An embedder with a table inside the package: of a text, the rows of its pieces of words are summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import unit_rows

LONGEST_TEXT = 5000


class Table:
    """A table with one row per piece: int8 with a float32 scale, as in the file. ``used`` holds, as float32 for sums,
    the rows that texts have needed so far; :meth:`place` returns a row's index there."""

    def __init__(self, rows: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._rows, self._scales = rows, scales
        self._places: dict[int, int] = {}
        self.used: NDArray[np.float32] = np.empty(rows.shape, np.float32)  # memory that was never written to takes none

    def place(self, number: int) -> int:
        """Returns the index in ``used`` of the row of piece ``number``; adds the row there the first time."""
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = len(self._places)
            np.multiply(self._rows[number].astype(np.float32), self._scales[number], out=self.used[place])
        return place

    def add(self, places: NDArray[np.int32], total: NDArray[np.float32]) -> None:
        """Sets ``total`` to the sum of the rows at ``places``, zeros for none. Adds whole rows one after the other, so
        the order of additions is that of the words, and the bits are the same on every processor."""
        np.add.reduce(self.used.take(places, axis=0), axis=0, out=total)


class _Pieces(Protocol):
    def numbers(self, text: str) -> NDArray[np.int32]:
        """Returns the indexes in the table of a text's pieces."""


class _Model(Protocol):
    """The contents of an embedder's file."""

    @property
    def table(self) -> Table: ...
    @property
    def pieces(self) -> _Pieces: ...


M = TypeVar("M", bound=_Model)


class DistilledEmbedder(Generic[M]):
    """Base of the :class:`Embedder` implementations with such a table. Reads its file, ``ID.npz`` unless another
    ``path`` is given, at the first text. Equal bits in any batch and run."""

    id = ""

    def __init__(self, read: Callable[[Path], M], path: Path | None) -> None:
        self._read, self._path = read, path

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows of shape ``(len(texts), dimension)``, from the first ``LONGEST_TEXT`` characters of each text.

        Text without letters or digits, or in a script that the model does not know, gives a row of zeros.
        """
        model = self._model
        sums = np.empty((len(texts), model.table.used.shape[1]), np.float32)
        for total, text in zip(sums, texts, strict=True):
            model.table.add(model.pieces.numbers(text[:LONGEST_TEXT]), total)
        return unit_rows(sums)

    @cached_property
    def _model(self) -> M:
        if self._path is not None:
            return self._read(self._path)
        with as_file(files(__package__) / f"{self.id}.npz") as path:
            return self._read(path)
