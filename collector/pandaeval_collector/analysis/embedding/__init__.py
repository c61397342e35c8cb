"""Text embedders. Cosines of different embedders are not comparable, so each result names its embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.base.errors import UserError
from pandaeval_otel.base.plugins import find


class EmbedderError(UserError):
    """An embedder is unknown or not installed, or does not return vectors."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Cosine thresholds: off topic below ``off``, on topic above ``on``, best separated at ``cut``.

    Answers fail below ``sure`` (0: no answer fails). ``0 <= sure <= off < cut < on <= 1``.
    """

    off: float
    cut: float
    on: float
    sure: float = 0.0

    def calibrated(self, cosine: float) -> float:
        """Map a cosine linearly: 0 at ``off``, 1 at ``on``."""
        return min(1.0, max(0.0, (cosine - self.off) / (self.on - self.off)))


@dataclass(frozen=True, slots=True)
class KnownShare:
    """Share of a text that an embedder knows, 0..1 of the words; true if sufficient. ``lacks``: the reason if not."""

    share: float = 1.0
    lacks: str = ""

    def __bool__(self) -> bool:
        return not self.lacks


ALL_KNOWN = KnownShare()
"""The value that an embedder for all languages returns for every text."""


class Embedder(Protocol):
    """Turns texts into vectors. ``id``: model and version (``embedded-1``). ``bands``: ``None`` if not measured."""

    id: str
    bands: Bands | None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 rows, shape ``(len(texts), dim)``, of length 1, or zeros for texts without content.

        May block.
        """
        ...


def knows(embedder: Embedder) -> Callable[[str], KnownShare]:
    """Return a function that estimates the known share of a text, by the embedder's optional method ``known``."""
    known: Callable[[str], KnownShare] = getattr(embedder, "known", lambda text: ALL_KNOWN)
    return known


def without_argument(scheme: str, argument: str) -> None:
    if argument:
        message = f"embedder {scheme!r} takes no argument, but got {argument!r}: write just {scheme!r}"
        raise EmbedderError(message)


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Normalise rows, shape ``(n, dim)``, float32; zero rows stay zero."""
    lengths = np.sqrt(np.add.reduce(np.square(rows, dtype=np.float64), axis=1))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = np.divide(rows, lengths[:, None], dtype=np.float64).astype(np.float32)
    return unit


def schemes() -> tuple[str, ...]:
    """Return the schemes for :func:`load`: modules here with ``SCHEME`` and ``open(argument)``."""
    return find(__package__, "SCHEME")


def load(spec: str) -> Embedder:
    """Open the embedder ``embedded``, ``multilingual`` or ``litellm:MODEL``.

    Raises :class:`EmbedderError` with the fix.
    """
    scheme, _, argument = spec.strip().partition(":")
    openers = dict(zip(schemes(), find(__package__, "open"), strict=True))
    if scheme not in openers:
        known = ", ".join(sorted(openers))
        raise EmbedderError(f"unknown embedder {spec!r}: known are {known} (with a model: litellm:MODEL)")
    embedder: Embedder = openers[scheme](argument)
    return embedder
