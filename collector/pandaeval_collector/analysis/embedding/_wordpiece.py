"""BERT's uncased WordPiece over words alone: punctuation says little about the subject and is left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from struct import pack

import numpy as np
from numpy.typing import NDArray

CACHED_WORDS = 50_000
LONGEST_WORD = 100

# Ideographs count as words of their own; everything else between non-letters is one word.
_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_NO_WORD = re.compile(rf"[^\x00-\x7f\w{_IDEOGRAPH}]")
# From an ASCII character to the same in lower case, or to a blank where it is none of a word.
_IN_WORD = bytes(ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)) + bytes(128)


def words(text: str) -> list[str]:
    """Splits a text into its words: lower case, without accents."""
    if not text.isascii():
        text = _simple(text.lower())
    # By way of bytes, since that takes a fifth of the time of an expression; most texts are ASCII, or nearly.
    return text.encode().translate(_IN_WORD).decode().split() if text.isascii() else _WORD.findall(text)


def _simple(text: str) -> str:
    """Without accents, and with blanks for what belongs to no word."""
    return _NO_WORD.sub(_instead, unicodedata.normalize("NFD", text))


def _instead(found: re.Match[str]) -> str:
    return "" if unicodedata.category(found[0]) == "Mn" else " "


class WordPiece(dict[str, bytes]):
    """From a word to the numbers of its pieces, int32; remembers words it has seen, at most ``CACHED_WORDS`` of them.

    A word with an unknown part, or longer than ``LONGEST_WORD`` characters, has no pieces. ``numbered``: what stands
    for the number of a piece in the vocabulary.
    """

    def __init__(self, vocabulary: Mapping[str, int], numbered: Callable[[int], int] = int) -> None:
        super().__init__()
        self._vocabulary, self._numbered = vocabulary, numbered

    def __missing__(self, word: str) -> bytes:
        if len(self) >= CACHED_WORDS:
            self.clear()
        numbers = [self._numbered(number) for number in self._pieces(word)]
        pieces = self[word] = pack(f"={len(numbers)}i", *numbers)
        return pieces

    def numbers(self, text: str) -> NDArray[np.int32]:
        """Returns the pieces of all words of the text, in order."""
        return np.frombuffer(b"".join(map(self.__getitem__, words(text))), np.int32)

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
