"""Selects training texts: ``texts.py PACKAGES DEBIAN OUT``.

``OUT/translations.jsonl``: an English text with translations per line. ``OUT/english.jsonl``: English passages of other
subjects, from the English model's sources.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from corpus import SEED, choose, pieces
from sources import SOURCES, plain as prose
from translations import CATALOGUES, plain

LONGEST = 400
FEWEST = 6  # languages that a text is translated to
WIDE = 32  # so many that a text is taken whatever its words
RARE = 8
ENGLISH = {
    "wordnet": 200_000,
    "wordnet-families": 80_000,
    "wordnet-stories": 70_000,
    "wordnet-requests": 60_000,
    "chat": 120_000,
    "functions": 50_000,
    "factbook": 30_000,
}


def translations(folder: Path) -> dict[str, dict[str, str]]:
    """Map English texts to their first translation by language."""
    every: dict[str, dict[str, str]] = {}
    for catalogue in CATALOGUES:
        same: dict[str, dict[str, str]] = defaultdict(dict)
        (path,) = folder.glob(catalogue.file)
        for key, code, text in catalogue.read(path):
            if code and len(text) < 4 * LONGEST:
                same[key].setdefault(code, plain(text)[:LONGEST])
        for found in same.values():
            english = found.pop("en", "")
            if any(letter.isalpha() for letter in english):
                of = every.setdefault(english, {})
                # What is the same in English was left untranslated, or is a name.
                of.update({code: text for code, text in found.items() if text not in ("", english) and code not in of})
        print(f"{path.name:60} {len(same):7} texts, now {sum(map(len, every.values())):8} translations", flush=True)
    return {english: found for english, found in sorted(every.items()) if found}


def chosen(every: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    """Return texts with a rare word, and texts in many languages, in random order."""
    records = [{"en": text, **dict(sorted(found.items()))} for text, found in every.items()]
    random.Random(SEED).shuffle(records)
    seen: Counter[str] = Counter()
    kept = []
    for record in records:
        words = set(re.findall(r"[a-z]+", record["en"].lower()))
        enough = len(record) >= FEWEST and len(record["en"].split()) >= 2
        if len(record) >= WIDE or (enough and any(seen[word] < RARE for word in words)):
            kept.append(record)
            seen.update(words)
    return kept


def english(debian: Path) -> list[str]:
    chance = random.Random(SEED)
    seen: Counter[str] = Counter()
    taken: list[str] = []
    for source in SOURCES:
        if source.name in ENGLISH:
            texts = sorted({prose(text) for text in source.read(debian)})
            passages = sorted({piece for text in texts for piece in pieces(text, chance)})
            chance.shuffle(passages)
            taken += choose(passages, ENGLISH[source.name], seen)
    random.Random(SEED).shuffle(taken)
    return taken


def main(packages: Path, debian: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    passages = english(debian)
    print(f"{len(passages)} English passages, {sum(len(text.split()) for text in passages)} words", flush=True)
    write(out / "english.jsonl", passages)
    records = chosen(translations(packages))
    write(out / "translations.jsonl", records)
    counted = Counter(code for record in records for code in record)
    print(f"{len(records)} English texts with translations, {sum(len(each['en'].split()) for each in records)} words")
    print(" ".join(f"{code} {number}" for code, number in counted.most_common()))


def write(path: Path, records: list[str] | list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
