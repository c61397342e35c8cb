"""Text to vectors. Every result names the embedder that it was computed with, since cosines of two do not compare."""

from pandaeval_collector.analysis.embedding._protocol import (
    ALL_KNOWN,
    Bands,
    Embedder,
    EmbedderError,
    Knowing,
    KnownShare,
    knows,
    load,
    schemes,
)

__all__ = ["ALL_KNOWN", "Bands", "Embedder", "EmbedderError", "Knowing", "KnownShare", "knows", "load", "schemes"]
