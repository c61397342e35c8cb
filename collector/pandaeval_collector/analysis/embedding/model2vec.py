"""Static models in model2vec's format, from a folder or from the hub (extra ``model2vec``)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, EmbedderError, unit_rows
from pandaeval_collector.base.errors import installation

SCHEME = "model2vec"


class Model2VecEmbedder:
    """Implements :class:`Embedder` by a static model. The id ends with a checksum of the rows, since one name can stand
    for several versions of a model."""

    bands: Bands | None = None

    def __init__(self, name: str, model: Any) -> None:
        checksum = zlib.crc32(np.ascontiguousarray(model.embedding).tobytes())
        self.id = f"{SCHEME}:{name}@{checksum:08x}"
        self._model = model

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows of shape ``(len(texts), dim)`` with the model's own dimension."""
        if not texts:
            return np.zeros((0, self._model.dim), np.float32)
        # Without a maximal length the whole text counts; several processes would cost more than they save.
        rows = self._model.encode(list(texts), max_length=None, use_multiprocessing=False)
        return unit_rows(np.nan_to_num(rows))


def open(argument: str) -> Embedder:
    """Makes the embedder. ``argument``: a folder with a saved model, or its name on the hub, which is then downloaded
    once."""
    if not argument:
        raise EmbedderError("embedder 'model2vec' needs a model: write model2vec:FOLDER or model2vec:OWNER/NAME")
    try:
        from model2vec import StaticModel
    except ImportError as error:
        raise EmbedderError(f"embedder 'model2vec' is not installed: {installation('model2vec')}") from error
    folder = Path(argument).expanduser()
    try:
        model = StaticModel.from_pretrained(folder if folder.is_dir() else argument)
    except Exception as error:  # the library, the hub's client and the file readers each raise their own
        cause = next(iter(str(error).splitlines()), "")
        raise EmbedderError(
            f"model2vec model {argument!r} could not be loaded ({type(error).__name__}: {cause}): "
            "give a folder that holds model.safetensors, or check the name and the way to the hub"
        ) from error
    return Model2VecEmbedder(folder.name if folder.is_dir() else argument, model)
