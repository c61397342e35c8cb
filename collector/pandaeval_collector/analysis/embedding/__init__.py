"""Text to vectors. Every result names the embedder that it was computed with, since cosines of two do not compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.base.errors import UserError
from pandaeval_otel.base.plugins import find


class EmbedderError(UserError):
    """Raised for an embedder that is unknown, not installed, not found or unreachable."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Spread of an embedder's cosines on labelled pairs: below ``off`` an answer is off topic, above ``on`` on topic;
    ``cut`` separates them best. Below ``sure``, answers fail as off topic; 0 if not measured. ``0 <= sure <= off < cut
    < on <= 1``.
    """

    off: float
    cut: float
    on: float
    sure: float = 0.0

    def calibrated(self, cosine: float) -> float:
        """Map a cosine to a scale that is the same for every embedder: 0 at ``off``, 1 at ``on``, linear between."""
        return min(1.0, max(0.0, (cosine - self.off) / (self.on - self.off)))


@dataclass(frozen=True, slots=True)
class KnownShare:
    """How much of a text an embedder knows; true if its vector represents the topic.

    ``share``: 0..1 of the words. ``lacks``: why it is insufficient, or "". It completes "the embedder does not know the
    answer: ", for example "9 % of its letters are Latin, and the model knows English alone".
    """

    share: float = 1.0
    lacks: str = ""

    def __bool__(self) -> bool:
        return not self.lacks


ALL_KNOWN = KnownShare()
"""The value that an embedder for all languages returns for every text."""


class Embedder(Protocol):
    """Turns texts into vectors. ``id``: model and version (``embedded-1``); ``bands``: ``None`` if not measured."""

    id: str
    bands: Bands | None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row per text, shape ``(len(texts), dim)``, float32, each of length 1, or all zeros where a text
        has nothing to embed. The same text gives the same row in any batch. Runs on the calling thread; may block."""
        ...


def knows(embedder: Embedder) -> Callable[[str], KnownShare]:
    """Return a function that estimates how much of a text an embedder knows, by script, language and words; short texts
    count as known. Uses the embedder's optional method ``known``. It may read only the beginning, takes microseconds
    and never raises or blocks.
    """
    known: Callable[[str], KnownShare] = getattr(embedder, "known", lambda text: ALL_KNOWN)
    return known


def without_argument(scheme: str, argument: str) -> None:
    """Raise :class:`EmbedderError` if an embedder that takes no argument was given an argument."""
    if argument:
        message = f"embedder {scheme!r} takes no argument, but got {argument!r}: write just {scheme!r}"
        raise EmbedderError(message)


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Divide rows by their Euclidean length: float32, shape ``(n, dim)``; zero rows stay zero.

    Adds squares in float64 row by row, so results do not depend on batch or processor.
    """
    lengths = np.sqrt(np.add.reduce(np.square(rows, dtype=np.float64), axis=1))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = np.divide(rows, lengths[:, None], dtype=np.float64).astype(np.float32)
    return unit


def schemes() -> tuple[str, ...]:
    """Return the schemes that :func:`load` knows; every module here with ``SCHEME`` has ``open(argument)`` too."""
    return find(__package__, "SCHEME")


def load(spec: str) -> Embedder:
    """Open the embedder that ``spec`` names: a scheme, or ``scheme:argument``.

    ``embedded`` | ``multilingual`` | ``litellm:MODEL``. Raises
    :class:`EmbedderError` with the cure in its message: unknown name, extra not installed, model not found.
    """
    scheme, _, argument = spec.strip().partition(":")
    openers = dict(zip(schemes(), find(__package__, "open"), strict=True))
    if scheme not in openers:
        known = ", ".join(sorted(openers))
        raise EmbedderError(f"unknown embedder {spec!r}: known are {known} (written scheme or scheme:model)")
    embedder: Embedder = openers[scheme](argument)
    return embedder
