"""Fits one row per piece, so that the sum of a text's rows points where the teacher's vector of its English original
points: ``rows.py OUT DIMENSION`` writes ``OUT/rows.npy``.

Two steps. The first is a linear map from the second teacher's vectors of single pieces (weighted by how rare a piece
is) to the first teacher's space: it gives every piece of every language a row, also those that no text here has. The
second moves the rows of pieces that do occur, by least squares as for the English model (``fit.py``).
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from fit import Matrix, cosine, lengths, solve
from pandaeval_collector.embedding._unigram import Unigram

MOST = 14_000  # translations of a language
SEED = 1
HELD_OUT = 20
STRENGTHS = (0.3, 1.0, 3.0)
STEPS = 10
RIDGE = 1e-3
FREQUENT = 3e-4


def pieces(out: Path) -> tuple[dict[str, int], bytes]:
    """The vocabulary and the costs, as the product reads them."""
    names = (out / "pieces.txt").read_text("utf-8").split("\n")
    return {piece: number for number, piece in enumerate(names)}, (out / "costs.bin").read_bytes()


def examples(out: Path) -> tuple[list[str], list[str], Matrix]:
    """Texts, their languages and the teacher's vector for each."""
    english = [json.loads(line) for line in (out / "english.jsonl").open(encoding="utf-8")]
    translations = [json.loads(line) for line in (out / "translations.jsonl").open(encoding="utf-8")]
    general: Matrix = np.load(out / "english.npy")
    same: Matrix = np.load(out / "translations.npy")
    places: dict[str, list[int]] = defaultdict(list)
    for number, found in enumerate(translations):
        for code in found:
            places[code].append(number)
    chance = random.Random(SEED)
    texts, codes, targets = list(english[: len(general)]), ["en"] * len(general), [general]
    for code in sorted(places):
        chosen = chance.sample(places[code], min(MOST, len(places[code])))
        texts += [translations[number][code] for number in chosen]
        codes += [code] * len(chosen)
        targets.append(same[chosen])
    return texts, codes, np.vstack(targets)


def counts(texts: list[str], unigram: Unigram, pieces: int) -> Any:
    """Sparse counts of pieces, shape (texts, pieces), as the product's own tokenizer finds them."""
    columns = [unigram.numbers(text) for text in texts]
    ends = np.cumsum([0, *map(len, columns)])
    flat = np.concatenate(columns)
    matrix = sparse.csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(texts), pieces))
    matrix.sum_duplicates()
    return matrix


def mapped(tokens: Matrix, costs: bytes, matrix: Any, targets: Matrix) -> Matrix:
    """The rows of the first step."""
    share = np.exp(-np.frombuffer(costs, np.uint8) / 12)
    share /= share.sum()
    centred = ((tokens - tokens.mean(0)) * (FREQUENT / (FREQUENT + share))[:, None]).astype(np.float32)
    image = matrix @ centred
    image /= np.maximum(np.linalg.norm(image, axis=1, keepdims=True), 1e-6)
    square = (image.T @ image).astype(np.float64)
    square += RIDGE * np.trace(square) / len(square) * np.eye(len(square))
    return np.asarray(centred @ np.linalg.solve(square, (image.T @ targets).astype(np.float64)), np.float32)


def scaled(rows: Matrix, matrix: Any, targets: Matrix) -> Matrix:
    """The rows in the scale that fits best where a text's sum is divided by the root of its pieces."""
    scale = np.sqrt(np.maximum(np.asarray(matrix.sum(1)).ravel(), 1.0)).astype(np.float32)
    image = (matrix @ rows) / scale[:, None]
    return np.asarray(rows * np.float32((image * targets).sum() / (image * image).sum()))


def fitted(matrix: Any, targets: Matrix, prior: Matrix, strength: float, rounds: int) -> Matrix:
    """The rows of the second step."""
    scale = np.sqrt(np.maximum(np.asarray(matrix.sum(1)).ravel(), 1.0)).astype(np.float32)
    rows = prior
    for _ in range(rounds):
        weighted = (sparse.diags(1 / scale) @ matrix).astype(np.float32).tocsr()
        rows = solve(weighted, targets, prior, rows, strength)  # STEPS of fit.py
        scale = lengths(matrix, rows)
    return rows


def main(out: Path, dimension: int) -> None:
    begun = time.monotonic()

    def tell(what: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {what}", flush=True)

    vocabulary, costs = pieces(out)
    texts, codes, teacher = examples(out)
    basis = np.linalg.eigh((teacher.T @ teacher).astype(np.float64))[1][:, ::-1][:, :dimension].astype(np.float32)
    targets = teacher @ basis
    matrix = counts(texts, Unigram(vocabulary, costs), len(vocabulary))
    seen = np.count_nonzero(np.asarray(matrix.sum(0)))
    tell(f"{len(texts)} texts, {matrix.sum():.0f} pieces, {seen} of {len(vocabulary)} different ones")

    held = np.arange(len(texts)) % HELD_OUT == 0
    prior = scaled(mapped(np.load(out / "tokens.npy"), costs, matrix[~held], targets[~held]), matrix, targets)
    np.save(out / "prior.npy", prior)
    tell(f"held-out cosine of mapped pieces {cosine(matrix[held], targets[held], prior):.4f}")
    found = {}
    for strength in STRENGTHS:
        rows = fitted(matrix[~held], targets[~held], prior, strength, rounds=1)
        found[strength] = cosine(matrix[held], targets[held], rows)
        tell(f"strength {strength}: held-out cosine {found[strength]:.4f}")
    best = max(found, key=lambda strength: found[strength])
    np.save(out / "rows.npy", fitted(matrix, targets, prior, best, rounds=3))
    tell("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
