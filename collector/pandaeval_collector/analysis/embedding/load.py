"""From the name in the configuration to an embedder."""

from __future__ import annotations

from pandaeval_collector.analysis.embedding._protocol import Embedder, EmbedderError
from pandaeval_otel.base.plugins import find


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
