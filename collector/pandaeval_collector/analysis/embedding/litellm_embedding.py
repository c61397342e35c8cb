"""Embeddings through litellm (extra ``judge``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, EmbedderError, unit_rows
from pandaeval_collector.base.errors import installation
from pandaeval_collector.base.untrusted.foreign import explained, secrets_in

SCHEME = "litellm"
BATCH = 96
TIMEOUT_SECONDS = 60.0
RETRIES = 2


class LiteLlmEmbedder:
    """:class:`Embedder` with a provider's model, configured by environment variables; blocks on the network."""

    bands: Bands | None = None

    def __init__(self, model: str, call: Callable[..., Any]) -> None:
        self.id = f"{SCHEME}:{model}"
        self._name = model
        self._call = call

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of shape ``(len(texts), dim)``; ``dim`` is 0 if all are blank.

        Blank texts are not sent. Raises :class:`EmbedderError`.
        """
        sent = [index for index, text in enumerate(texts) if text.strip()]
        vectors: list[list[float]] = []
        for start in range(0, len(sent), BATCH):
            vectors += self._request([texts[index] for index in sent[start : start + BATCH]])
        try:
            answered = np.array(vectors, np.float64).reshape(len(sent), -1 if sent else 0)
        except ValueError as error:
            raise EmbedderError(f"embedding model {self._name!r} answered with vectors of unequal length") from error
        if not np.isfinite(answered).all():
            raise EmbedderError(f"embedding model {self._name!r} answered with numbers that are not finite")
        rows = np.zeros((len(texts), answered.shape[1]), np.float32)
        rows[sent] = unit_rows(answered)
        return rows

    def _request(self, texts: list[str]) -> list[list[float]]:
        try:
            answer = self._call(
                model=self._name,
                input=texts,
                timeout=TIMEOUT_SECONDS,
                num_retries=RETRIES,
                encoding_format="float",
            )
            items = sorted(answer.data, key=lambda item: item["index"])
            vectors = [item["embedding"] for item in items]
        except Exception as error:  # noqa: BLE001 - litellm passes on errors of provider and transport
            error_text = explained(error, secrets_in(os.environ))
            # Without the cause: a traceback would show the provider's text, which can contain the key.
            raise EmbedderError(f"embedding model {self._name!r} failed: {error_text}") from None
        if len(vectors) != len(texts):
            raise EmbedderError(
                f"embedding model {self._name!r} answered with {len(vectors)} vectors for {len(texts)} texts"
            )
        return vectors


def open(argument: str) -> Embedder:
    """Make the embedder; sends nothing. ``argument``: litellm model, such as ``openai/text-embedding-3-small``."""
    if not argument:
        raise EmbedderError("embedder 'litellm' needs a model: write litellm:PROVIDER/MODEL")
    # Without it the import fetches a price list from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError as error:
        raise EmbedderError(f"embedder 'litellm' is not installed: {installation('judge')}") from error
    litellm.suppress_debug_info = True
    return LiteLlmEmbedder(argument, litellm.embedding)
