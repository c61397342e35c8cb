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
    """An embedder that is unknown, not installed, not found or out of reach."""


@dataclass(frozen=True, slots=True)
class Bands:
    """How cosines of an embedder are spread, measured on labelled pairs: below ``off`` is off topic, above ``on`` is
    on topic, ``cut`` separates the two best. Below ``sure`` lies fewer than one in a hundred answers to what was asked;
    0 where that was not measured, and nothing is sure. ``0 <= sure <= off < cut < on <= 1``."""

    off: float
    cut: float
    on: float
    sure: float = 0.0

    def calibrated(self, cosine: float) -> float:
        """Puts a cosine on a scale that means the same for every embedder: 0 at ``off``, 1 at ``on``, linear
        between."""
        return min(1.0, max(0.0, (cosine - self.off) / (self.on - self.off)))


@dataclass(frozen=True, slots=True)
class KnownShare:
    """How much of a text an embedder knows, true where that is enough to read its vector as the text's topic.

    ``share``: 0..1 of the text's words. ``lacks``: why it is not enough, "" where it is; it goes on from "the embedder
    does not know the answer: " ("9 % of its letters are Latin, and the model knows English alone").
    """

    share: float = 1.0
    lacks: str = ""

    def __bool__(self) -> bool:
        return not self.lacks


ALL_KNOWN = KnownShare()
"""What an embedder for all languages says of every text."""


class Embedder(Protocol):
    """``id`` names model and version (``embedded-1``); ``bands`` is ``None`` where no table was measured."""

    id: str
    bands: Bands | None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds texts: one row per text, shape ``(len(texts), dim)``, float32, each of length 1; a row of zeros where
        the text has nothing to embed. The same text gives the same row in any batch. Runs on the calling thread; may
        block."""
        ...


class Knowing(Protocol):
    """What an embedder has besides where it does not know all texts, or knows that it does; see :func:`knows`."""

    def known(self, text: str) -> KnownShare:
        """Tells how much of a text is known, by its script, its language and its words, whatever its length: that a
        text is short is no lack. Of a long text the beginning may stand for all. Takes microseconds, never raises and
        never blocks, since it is asked for every text that is compared. Runs on the thread of
        :meth:`Embedder.embed`."""
        ...


def knows(embedder: Embedder) -> Callable[[str], KnownShare]:
    """How much an embedder knows of each text; all of it where the embedder does not say (:class:`Knowing`)."""
    known: Callable[[str], KnownShare] = getattr(embedder, "known", _all_known)
    return known


def _all_known(text: str) -> KnownShare:
    return ALL_KNOWN


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Divides rows by their Euclidean length: float32, same shape ``(n, dim)``; rows of zeros stay zeros.

    Squares are added in float64 and row by row: no matrix product, whose order of additions depends on the batch and
    on the processor.
    """
    lengths = np.sqrt(np.add.reduce(np.square(rows, dtype=np.float64), axis=1))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = np.divide(rows, lengths[:, None], dtype=np.float64).astype(np.float32)
    return unit


def schemes() -> tuple[str, ...]:
    """The names that :func:`load` knows: every module here that has ``SCHEME`` has ``open(argument)`` too."""
    return find(__package__, "SCHEME")


def load(spec: str) -> Embedder:
    """The embedder that ``spec`` names: a scheme, or ``scheme:argument``.

    ``embedded`` | ``multilingual`` | ``onnx-minilm`` | ``model2vec:FOLDER_OR_HUB_NAME`` | ``litellm:MODEL``. Raises
    :class:`EmbedderError` with the cure in its message: unknown name, extra not installed, model not found.
    """
    scheme, _, argument = spec.strip().partition(":")
    openers = dict(zip(schemes(), find(__package__, "open"), strict=True))
    if scheme not in openers:
        known = ", ".join(sorted(openers))
        raise EmbedderError(f"unknown embedder {spec!r}: known are {known} (written scheme or scheme:model)")
    embedder: Embedder = openers[scheme](argument)
    return embedder
