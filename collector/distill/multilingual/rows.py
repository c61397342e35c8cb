"""Fits a row per piece, so that a text's sum has the direction of the English original's vector: ``rows.py OUT`` writes
``OUT/rows.npy``.

Step 1: a linear map from e5's piece vectors, for every piece. Step 2: least squares for occurring pieces (``fit.py``).
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import fit
import numpy as np
import scipy.sparse as sparse
from fit import Matrix, cosine, lengths, solve
from pieces import FINENESS

from pandaeval_collector.analysis.embedding.embedded import EmbeddedEmbedder
from pandaeval_collector.analysis.embedding.multilingual import Unigram

DIMENSION = 128
MOST = 5_000  # translations of a language
PASSAGES = 16_000  # English ones
SEED = 1
HELD_OUT = 20
STRENGTH = 1.0  # of no weight: with 0.1 the held-out cosine is the same
ROUNDS = 2
fit.STEPS = 10
RIDGE = 1e-3
FREQUENT = 3e-5


def pieces(out: Path) -> tuple[dict[str, int], bytes]:
    names = (out / "pieces.txt").read_text("utf-8").split("\n")
    return {piece: number for number, piece in enumerate(names)}, (out / "costs.bin").read_bytes()


def examples(out: Path) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in map(json.loads, (out / "translations.jsonl").open(encoding="utf-8")):
        for code, text in record.items():
            if len(found[code]) < MOST:
                found[code].append((text, record["en"]))
    passages = islice((out / "english.jsonl").open(encoding="utf-8"), PASSAGES)
    found["en"] += [(text, text) for text in map(json.loads, passages)]
    return dict(sorted(found.items()))


def counts(texts: list[str], unigram: Unigram, pieces: int) -> Any:
    """Return sparse counts, shape (texts, pieces)."""
    columns = [unigram.numbers(text) for text in texts]
    ends = np.cumsum([0, *map(len, columns)])
    flat = np.concatenate(columns)
    matrix = sparse.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(texts), pieces))
    matrix.sum_duplicates()
    return matrix


def mapped(vectors: Matrix, costs: bytes, matrix: Any, targets: Matrix) -> Matrix:
    """Return the rows of step 1, with the best scale."""
    share = np.exp(-np.frombuffer(costs, np.uint8) / FINENESS)
    share /= share.sum()
    centred = ((vectors - vectors.mean(0)) * (FREQUENT / (FREQUENT + share))[:, None]).astype(np.float32)
    image = matrix @ centred
    image /= np.maximum(np.linalg.norm(image, axis=1, keepdims=True), 1e-6)
    square = (image.T @ image).astype(np.float64)
    square += RIDGE * np.trace(square) / len(square) * np.eye(len(square))
    rows = (centred @ np.linalg.solve(square, (image.T @ targets).astype(np.float64))).astype(np.float32)
    scaled = (matrix @ rows) / roots(matrix)[:, None]
    return np.asarray(rows * np.float32((scaled * targets).sum() / (scaled * scaled).sum()))


def roots(matrix: Any) -> Matrix:
    return np.sqrt(np.maximum(np.asarray(matrix.sum(1)).ravel(), 1.0)).astype(np.float32)


def fitted(matrix: Any, targets: Matrix, prior: Matrix) -> Matrix:
    rows, scale = prior, roots(matrix)
    for _ in range(ROUNDS):
        rows = solve((sparse.diags(1 / scale) @ matrix).astype(np.float32).tocsr(), targets, prior, rows, STRENGTH)
        scale = lengths(matrix, rows)
    return rows


def main(out: Path) -> None:
    begun = time.monotonic()

    def tell(what: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {what}", flush=True)

    vocabulary, costs = pieces(out)
    pairs = [pair for found in examples(out).values() for pair in found]
    originals = list(dict.fromkeys(original for _, original in pairs))
    place = {original: number for number, original in enumerate(originals)}
    english = EmbeddedEmbedder().embed(originals)
    tell(f"{len(originals)} English texts embedded")
    matrix = counts([text for text, _ in pairs], Unigram(vocabulary, costs), len(vocabulary))
    full = english[[place[original] for _, original in pairs]]
    kept = np.flatnonzero((np.asarray(matrix.sum(1)).ravel() > 0) & full.any(1))
    matrix, full = matrix[kept], full[kept]
    basis = np.linalg.eigh((full.T @ full).astype(np.float64))[1][:, ::-1][:, :DIMENSION].astype(np.float32)
    targets = full @ basis
    seen = np.count_nonzero(np.asarray(matrix.sum(0)))
    tell(f"{len(kept)} texts, {matrix.sum():.0f} pieces, {seen} of {len(vocabulary)} different ones")

    chance = np.random.default_rng(SEED)
    held = chance.permutation(len(kept)) % HELD_OUT == 0
    prior = mapped(np.load(out / "vectors.npy"), costs, matrix[~held], targets[~held])
    np.save(out / "prior.npy", prior)
    tell(f"held-out cosine of mapped pieces {cosine(matrix[held], targets[held], prior):.4f}")
    rows = fitted(matrix[~held], targets[~held], prior)
    np.save(out / "rows.npy", rows)
    tell(f"held-out cosine of fitted pieces {cosine(matrix[held], targets[held], rows):.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
