"""Built-in multilingual embedder: sum of word piece vectors, with numpy only.

``multilingual-1.npz`` was distilled by ``collector/distill/multilingual``. It measures topic, not truth.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, KnownShare, _wordpiece, without_argument
from pandaeval_collector.analysis.embedding.embedded import DistilledEmbedder, Table

# Words of any script into pieces of a fixed vocabulary, the cheapest way (SentencePiece's unigram model).
LONGEST_CACHED = 24
LONGEST_PIECE = 16
# Cost of a character without a piece. It is higher than the cost of any piece, so only this character is omitted.
UNKNOWN_COST = 1_000
START = "▁"

# Scripts without spaces between words: a run of characters is not a word, and its pieces have no START.
_RUN = "\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003134f"
# Vowels and tones that are written as marks on a letter (\w has letters and digits alone).
_MARKS = "\u0300-\u036f\u0900-\u0903\u093a-\u0963\u0981-\u0983\u09bc-\u09d7\u0b82-\u0bd7\u0e31-\u0e3a\u0e47-\u0e4e"
_in_run = re.compile(f"[{_RUN}]").match
_WORD = re.compile(rf"[{_RUN}]+|(?:[^\W_{_RUN}]|[{_MARKS}])+")
# Vowel points of Hebrew and Arabic, and the stroke that stretches words. Most texts omit them.
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
SCHEME = "multilingual"
# Measured by `python tests/lab/bench/embedding_languages.py FOLDER`, on dialogues. There is no failure cut, because
# answers on topic occur at any cosine.
BANDS = Bands(off=0.08, cut=0.13, on=0.2)
# The scripts of the languages that the model learned: Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, those
# of Chinese, Japanese and Korean.
KNOWN_LETTER = re.compile(
    "[A-Za-z\u00aa-\u024f\u1e00-\u1eff\uff21-\uff5a\u0370-\u03ff\u1f00-\u1fff\u0400-\u052f\u05d0-\u05ea\u0620-\u06d3"
    "\u06fa-\u06fc\u0904-\u0939\u0958-\u0961\u0e01-\u0e30\u0e40-\u0e46\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f]"
)
_LETTER = re.compile(r"[^\W\d_]")
_LOOKED_AT = 1000
_ENOUGH = 0.5


def normal(text: str) -> str:
    """Normalise a text: compatible forms unified, lower case, without optional vowel points."""
    return _POINTS.sub("", unicodedata.normalize("NFKC", text.lower())).replace("i\u0307", "i")


def words(text: str) -> list[str]:
    """Split a text into words; ``START`` marks words of scripts with blanks."""
    if text.isascii():
        return [START + word for word in _wordpiece.words(text)]
    return [word if _in_run(word) else START + word for word in _WORD.findall(normal(text))]


class Unigram(_wordpiece.Pieces):
    """Pieces of a word (:func:`words`). ``costs``: by piece number, 1 to 255, higher for rarer pieces."""

    longest = LONGEST_CACHED
    words = staticmethod(words)

    def __init__(self, vocabulary: Mapping[str, int], costs: bytes, numbered: Callable[[int], int] = int) -> None:
        super().__init__(vocabulary, numbered)
        self._costs = costs

    def split(self, word: str) -> list[int]:
        length = len(word)
        best = [0, *[UNKNOWN_COST * (length + 1)] * length]
        last: list[tuple[int, int]] = [(0, -1)] * (length + 1)
        for start in range(length):
            base = best[start]
            if base + UNKNOWN_COST < best[start + 1]:
                best[start + 1], last[start + 1] = base + UNKNOWN_COST, (start, -1)
            for end in range(start + 1, min(length, start + LONGEST_PIECE) + 1):
                number = self._vocabulary.get(word[start:end])
                if number is not None and base + self._costs[number] < best[end]:
                    best[end], last[end] = base + self._costs[number], (start, number)
        pieces: list[int] = []
        end = length
        while end:
            end, number = last[end]
            if number >= 0:
                pieces.append(number)
        return pieces[::-1]


class MultilingualEmbedder(DistilledEmbedder):
    id = "multilingual-1"
    bands: Bands | None = BANDS

    def pieces(self, held: Mapping[str, NDArray[Any]], numbers: Mapping[str, int], table: Table) -> Unigram:
        return Unigram(numbers, held["costs"].tobytes(), table.place)

    def known(self, text: str) -> KnownShare:
        """Judge by script alone, from the first ``_LOOKED_AT`` characters."""
        letters = len(_LETTER.findall(text[:_LOOKED_AT]))
        share = len(KNOWN_LETTER.findall(text[:_LOOKED_AT])) / letters if letters else 1.0
        if share >= _ENOUGH:
            return KnownShare(min(1.0, share))
        return KnownShare(share, f"only {share:.0%} of its letters are in a script that the model knows")


def open(argument: str) -> Embedder:
    without_argument(SCHEME, argument)
    return MultilingualEmbedder()
