"""BERT's uncased WordPiece over words alone: punctuation says little about the subject and is left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import chain

CACHED_WORDS = 50_000
LONGEST_WORD = 100

_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Ideographs count as words of their own; everything else between non-letters is one word.
_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")


def words(text: str) -> list[str]:
    """The words of a text in order: lower case, without accents."""
    lower = text.lower()
    if lower.isascii():
        return _ASCII_WORD.findall(lower)
    return _WORD.findall("".join(c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn"))


class WordPiece(dict[str, tuple[int, ...]]):
    """From a word to the numbers of its pieces; remembers words it has seen, at most ``CACHED_WORDS`` of them.

    A word with an unknown part, or longer than ``LONGEST_WORD`` characters, has no pieces.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= CACHED_WORDS:
            self.clear()
        pieces = self[word] = self._pieces(word)
        return pieces

    def numbers(self, text: str) -> list[int]:
        """The pieces of all words of the text, in order."""
        return list(chain.from_iterable(map(self.__getitem__, words(text))))

    def _pieces(self, word: str) -> tuple[int, ...]:
        """Greedy: the longest known piece from the left, then the longest continuation, and so on."""
        if len(word) > LONGEST_WORD:
            return ()
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return ()
            pieces.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return tuple(pieces)
