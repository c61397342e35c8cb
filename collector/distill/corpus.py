"""Selects the teacher's passages: ``corpus.py DEBIAN OUT`` writes ``OUT/corpus.jsonl``.

Passages are cut, shuffled with a fixed seed and taken up to the source's share of words, the first half only with a
rare word.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sources import SOURCES, plain

WORDS = {
    "wordnet": 700_000,
    "wordnet-families": 450_000,
    "wordnet-stories": 350_000,
    "wordnet-requests": 300_000,
    "chat": 850_000,
    "functions": 250_000,
    "aws": 150_000,
    "google": 250_000,
    "factbook": 200_000,
    "python": 150_000,
    "fhir": 70_000,
    "stripe": 50_000,
}
LENGTHS = (8, 15, 25, 40, 60, 100, 150)
RARE = 12
SEED = 1


def pieces(text: str, chance: random.Random) -> Iterator[str]:
    """Cut a text after varied numbers of words; drops pieces below three words."""
    words = text.split()
    while len(words) > 2:
        length = chance.choice(LENGTHS)
        yield " ".join(words[:length])[:1000]
        words = words[length:]


def choose(passages: list[str], share: int, seen: Counter[str]) -> list[str]:
    """Return passages of about ``share`` words; counts their words in ``seen``."""
    chosen, left, used = [], [], 0
    for passage in passages:
        words = set(re.findall(r"[a-z]+", passage.lower()))
        if used < share / 2 and any(seen[word] < RARE for word in words):
            chosen.append(passage)
            seen.update(words)
            used += len(passage.split())
        else:
            left.append(passage)
    for passage in left:
        if used >= share:
            break
        chosen.append(passage)
        used += len(passage.split())
    return chosen


def main(debian: Path, out: Path) -> None:
    chance = random.Random(SEED)
    seen: Counter[str] = Counter()
    corpus: list[tuple[str, str]] = []
    for source in SOURCES:
        texts = sorted({plain(text) for text in source.read(debian)})
        passages = sorted({piece for text in texts for piece in pieces(text, chance)})
        chance.shuffle(passages)
        chosen = choose(passages, WORDS[source.name], seen)
        corpus += [(source.name, passage) for passage in chosen]
        print(
            f"{source.name:18} {len(chosen):7} passages of {len(passages)}, {sum(len(p.split()) for p in chosen)} words"
        )
    chance.shuffle(corpus)
    out.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"source": name, "text": text}, ensure_ascii=False) for name, text in corpus)
    (out / "corpus.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
