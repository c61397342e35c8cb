"""An embedder with a table inside the package: of a text, the rows of its pieces of words are summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding._table import Table
from pandaeval_collector.analysis.embedding._unit import unit_rows

LONGEST_TEXT = 5000


class _Pieces(Protocol):
    def numbers(self, text: str) -> NDArray[np.int32]:
        """The places in the table of the pieces of a text."""


class _Model(Protocol):
    """What a file holds."""

    @property
    def table(self) -> Table: ...
    @property
    def pieces(self) -> _Pieces: ...


M = TypeVar("M", bound=_Model)


class DistilledEmbedder(Generic[M]):
    """What implementations of :class:`Embedder` with such a table share. Reads its file, ``ID.npz`` unless another
    ``path`` is given, at the first text. Equal bits in any batch and run."""

    id = ""

    def __init__(self, read: Callable[[Path], M], path: Path | None) -> None:
        self._read, self._path = read, path

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape ``(len(texts), dimension)``; of each text the first ``LONGEST_TEXT`` characters count.

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
