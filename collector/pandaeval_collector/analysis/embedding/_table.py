"""Rows of numbers for pieces of words, as a file holds them, and the sums of those that a text has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Table:
    """One row per piece: int8 with a float32 scale, as they are in the file. ``used``: the rows that texts had so far,
    as float32, since those are what is added up; ``place`` gives the row's place there."""

    def __init__(self, rows: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._rows, self._scales = rows, scales
        self._places: dict[int, int] = {}
        self.used: NDArray[np.float32] = np.empty(rows.shape, np.float32)  # memory that was never written to takes none

    def place(self, number: int) -> int:
        """Where the row of piece ``number`` is in ``used``, put there when it is asked for the first time."""
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = len(self._places)
            np.multiply(self._rows[number].astype(np.float32), self._scales[number], out=self.used[place])
        return place

    def add(self, places: NDArray[np.int32], total: NDArray[np.float32]) -> None:
        """``total`` becomes the sum of the rows at ``places``, zeros for none. Adds whole rows one after the other, so
        the order of additions is that of the words, and the bits are the same on every processor."""
        np.add.reduce(self.used.take(places, axis=0), axis=0, out=total)
