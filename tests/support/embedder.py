"""A small embedder that hashes words into 64 dimensions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands


class WordEmbedder:
    """Implements ``Embedder``. ``fail_on``: text that makes :meth:`embed` raise."""

    id = "words-1"
    bands: Bands | None = Bands(off=0.1, cut=0.3, on=0.6, sure=0.1)

    def __init__(self, fail_on: str | None = None) -> None:
        self.fail_on = fail_on

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if self.fail_on is not None and self.fail_on in text:
                raise OSError("the embedder is out of order")
            for word in re.findall(r"\w+", text.casefold()):
                row[hashlib.blake2b(word.encode(), digest_size=1).digest()[0] % 64] += 1
            norm = float(np.linalg.norm(row))
            row /= norm or 1.0
        return rows
