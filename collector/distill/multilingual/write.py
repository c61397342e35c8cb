"""Writes the model file: ``write.py OUT MODEL.npz`` removes the common direction from ``OUT/rows.npy`` and stores an
int8 row, a float32 scale and a cost per piece.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

import numpy as np
from fit import Matrix, lengths
from rows import counts, examples, pieces

from pandaeval_collector.analysis.embedding.multilingual import Unigram

SAMPLES = 100
JOINED = 12
SEED = 1


def common_direction(out: Path, unigram: Unigram, rows: Matrix) -> Matrix:
    chance = random.Random(SEED)
    joined = [
        " ".join(text for text, _ in chance.sample(found, JOINED))
        for found in examples(out).values()
        for _ in range(SAMPLES)
    ]
    matrix = counts(joined, unigram, len(rows))
    main: Matrix = np.linalg.svd((matrix @ rows) / lengths(matrix, rows)[:, None], full_matrices=False)[2][0]
    return main


def main(out: Path, model: Path) -> None:
    vocabulary, costs = pieces(out)
    rows: Matrix = np.load(out / "rows.npy")
    common = common_direction(out, Unigram(vocabulary, costs), rows)
    rows -= np.outer(rows @ common, common)
    scales = np.maximum(np.abs(rows).max(1), 1e-12) / 127
    np.savez_compressed(
        model,
        vocabulary=np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        costs=np.frombuffer(costs, np.uint8),
        rows=np.rint(rows / scales[:, None]).astype(np.int8),
        scales=scales.astype(np.float32),
    )
    content = model.read_bytes()
    print(f"{model.name}: {rows.shape} pieces, {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
