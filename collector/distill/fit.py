"""Fits a row per word piece, so that a passage's sum has the direction of the teacher's vector: ``fit.py OUT`` writes
``OUT/rows.npy``.

Least squares, sum over passages of ``|A_i E / z_i - Y_i|^2 + strength |E - E0|^2``. ``A``: piece counts. ``Y``: the
teacher's vectors in ``DIMENSION`` main directions. ``E0``: its vectors of single pieces, small for frequent pieces.
``z_i``: first the root of the passage's length, then the current length of ``A_i E``. ``strength``: best cosine on
held-out passages; the last fit uses all.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding._wordpiece import WordPiece

DIMENSION = 256
STRENGTHS = (0.1, 0.3, 1.0)
STEPS = 25
ROUNDS = 4
HELD_OUT = 20
# BERT's vocabulary is sorted by frequency from here on.
FIRST_WORD = 1996
FREQUENT = 1e-4

Matrix = NDArray[np.float32]


def counts(texts: list[str], vocabulary: list[str]) -> Any:
    """Return sparse counts, shape (texts, pieces)."""
    pieces = WordPiece({piece: number for number, piece in enumerate(vocabulary)})
    columns = [pieces.numbers(text) for text in texts]
    ends = np.cumsum([0, *map(len, columns)])
    flat = np.fromiter((number for row in columns for number in row), np.int32, count=int(ends[-1]))
    matrix = sparse.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(texts), len(vocabulary)))
    matrix.sum_duplicates()
    return matrix


def lengths(matrix: Any, rows: Matrix) -> Matrix:
    return np.asarray(np.maximum(np.linalg.norm(matrix @ rows, axis=1), 1e-6), np.float32)


def solve(matrix: Any, targets: Matrix, prior: Matrix, start: Matrix, strength: float) -> Matrix:
    transposed = matrix.T.tocsr()
    rows = start.copy()
    residual = transposed @ (targets - matrix @ rows) - strength * (rows - prior)
    direction, size = residual.copy(), (residual * residual).sum(0)
    for _ in range(STEPS):
        image = transposed @ (matrix @ direction) + strength * direction
        step = size / np.maximum((direction * image).sum(0), 1e-12)
        rows += direction * step
        residual -= image * step
        new = (residual * residual).sum(0)
        direction = residual + direction * (new / np.maximum(size, 1e-12))
        size = new
    return rows


def fit(matrix: Any, targets: Matrix, prior: Matrix, strength: float, rounds: int = ROUNDS) -> Matrix:
    """Return rows of shape (pieces, DIMENSION)."""
    scale = np.sqrt(np.maximum(np.asarray(matrix.sum(1)).ravel(), 1.0)).astype(np.float32)
    rows = prior
    for _ in range(rounds):
        rows = solve(sparse.diags(1 / scale).astype(np.float32) @ matrix, targets, prior, rows, strength)
        scale = lengths(matrix, rows)
    return rows


def cosine(matrix: Any, targets: Matrix, rows: Matrix) -> float:
    """Return the mean cosine to the teacher's vectors, which have length 1 before their reduction."""
    return float(((matrix @ rows) / lengths(matrix, rows)[:, None] * targets).sum(1).mean())


def prior_rows(tokens: Matrix, vocabulary: list[str], basis: Matrix, matrix: Any, targets: Matrix) -> Matrix:
    """Return the teacher's vectors of single pieces, centred, small for frequent pieces, with the best scale."""
    rank = np.arange(len(vocabulary)) - FIRST_WORD
    share = 1 / np.where(rank >= 0, rank + 1, 500)
    share /= share.sum()
    rows = ((tokens - tokens.mean(0)) @ basis * (FREQUENT / (FREQUENT + share))[:, None]).astype(np.float32)
    scale = np.sqrt(np.maximum(np.asarray(matrix.sum(1)).ravel(), 1.0)).astype(np.float32)
    image = (matrix @ rows) / scale[:, None]
    return np.asarray(rows * np.float32((image * targets).sum() / (image * image).sum()))


def main(out: Path) -> None:
    texts = [json.loads(line)["text"] for line in (out / "corpus.jsonl").open(encoding="utf-8")]
    vocabulary = (out / "vocabulary.txt").read_text("utf-8").split("\n")
    teacher: Matrix = np.load(out / "teacher.npy")
    basis = np.linalg.eigh((teacher.T @ teacher).astype(np.float64))[1][:, ::-1][:, :DIMENSION].astype(np.float32)
    targets = teacher @ basis
    matrix = counts(texts, vocabulary)
    print(
        f"{np.count_nonzero(np.asarray(matrix.sum(0)))} of {len(vocabulary)} word pieces are in the corpus", flush=True
    )

    held = np.arange(len(texts)) % HELD_OUT == 0
    prior = prior_rows(np.load(out / "tokens.npy"), vocabulary, basis, matrix[~held], targets[~held])
    print(f"held-out cosine of single pieces {cosine(matrix[held], targets[held], prior):.4f}", flush=True)
    found = {}
    for strength in STRENGTHS:
        begun = time.monotonic()
        rows = fit(matrix[~held], targets[~held], prior, strength, rounds=2)
        found[strength] = cosine(matrix[held], targets[held], rows)
        print(
            f"strength {strength}: held-out cosine {found[strength]:.4f}, {time.monotonic() - begun:.0f} s", flush=True
        )
    best = max(found, key=lambda strength: found[strength])
    np.save(out / "rows.npy", fit(matrix, targets, prior, best))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
