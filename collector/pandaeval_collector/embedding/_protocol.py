"""What an embedder is, and how its cosines are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Bands:
    """How cosines of an embedder are spread, measured on a labelled set: below ``off`` is off topic, above ``on`` is
    on topic, ``cut`` separates the two best. ``0 <= off < cut < on <= 1``."""

    off: float
    cut: float
    on: float

    def calibrated(self, cosine: float) -> float:
        """The cosine on a scale that means the same for every embedder: 0 at ``off``, 1 at ``on``, linear between."""
        return min(1.0, max(0.0, (cosine - self.off) / (self.on - self.off)))


class Embedder(Protocol):
    """``id`` names model and version (``embedded-1``); ``bands`` is ``None`` where no table was measured."""

    id: str
    bands: Bands | None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, shape ``(len(texts), dim)``, float32, each of length 1; a row of zeros where the text has
        nothing to embed. The same text gives the same row in any batch. Runs on the calling thread; may block."""
        ...
