"""Writes the model file: ``bake.py OUT MODEL.npz`` removes the common direction from ``OUT/rows.npy`` and stores an
int8 row and a float32 scale per word piece.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path

import numpy as np
from fit import Matrix, counts, lengths

SAMPLES = 3000
JOINED = 12
SEED = 1


def common_direction(texts: list[str], vocabulary: list[str], rows: Matrix) -> Matrix:
    chance = random.Random(SEED)
    joined = counts([" ".join(chance.sample(texts, JOINED)) for _ in range(SAMPLES)], vocabulary)
    vectors = (joined @ rows) / lengths(joined, rows)[:, None]
    main: Matrix = np.linalg.svd(vectors, full_matrices=False)[2][0]
    return main


def main(out: Path, model: Path) -> None:
    texts = [json.loads(line)["text"] for line in (out / "corpus.jsonl").open(encoding="utf-8")]
    vocabulary = (out / "vocabulary.txt").read_text("utf-8").split("\n")
    rows: Matrix = np.load(out / "rows.npy")
    common = common_direction(texts, vocabulary, rows)
    rows -= np.outer(rows @ common, common)
    # Pieces such as [PAD] and [unused7] and single marks never come out of the product's tokenizer.
    kept = [number for number, piece in enumerate(vocabulary) if piece.removeprefix("##").isalnum()]
    rows = rows[kept]
    scales = np.maximum(np.abs(rows).max(1), 1e-12) / 127
    np.savez_compressed(
        model,
        vocabulary=np.frombuffer("\n".join(vocabulary[number] for number in kept).encode(), np.uint8),
        rows=np.rint(rows / scales[:, None]).astype(np.int8),
        scales=scales.astype(np.float32),
    )
    content = model.read_bytes()
    print(f"{model.name}: {len(kept)} pieces, {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
