"""BERT's uncased WordPiece without punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from struct import pack

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, KnownShare

CACHED_WORDS = 50_000
LONGEST_WORD = 100

# Each ideograph is a word. All other text between non-letters is a word.
_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_NO_WORD = re.compile(rf"[^\x00-\x7f\w{_IDEOGRAPH}]")
# Maps an ASCII character to lower case, or to a space if it is not part of a word.
_IN_WORD = bytes(ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)) + bytes(128)
# Whether a text is English, for models that know no other language.
#
# BERT's vocabulary is ordered by frequency. Words of every Latin language have pieces in it, so pieces do not show
# that a text is known. In English prose, nine of ten words are common as a whole, and every second word is a function
# word. In other languages, a fifth of the words are common, and hardly any word is an English function word.
COMMON = 8000
"""Number of pieces at the start of the vocabulary that count as common words."""
LEAST = 0.6
"""Points per word that make a text English: 2 per function word, 1 per common word, -1 per foreign function word."""
READ = 400
"""Characters at the beginning that represent a text."""
FEWEST_WORDS = 4
"""With fewer words, Latin text counts as known: names and codes have no language."""
LEAST_LATIN = 0.5
# Words that English shares with other languages (in, die, on, was, so) are listed as English or not at all.
_ENGLISH_WORDS = """
    the and you your that with from this are have has had not what can how it its they their there which when who why
    been would could should please if then than because about any some these those were be is of to for or but at by my
    we our us he she his her him them do does did will i an in on as was so no yes all may must also more other only
    such into out up just like need help here let know get want where each while between without
    """
_OTHER_WORDS = """
    der das und ist nicht ein eine einen einer dem den von mit auf ich sie wir zu auch sich wie bei oder wenn
    le les des et est une dans pour vous que qui sur pas ce cette avec sont aux nous mais votre je du ne
    el los las una del por para con su se es lo como pero esta este sus al hay mi muy
    il di che della non sono gli nel alla anche mio questo piu
    os um uma nao em dos ao seu sua voce isso pelo foi
    het een van niet dat te zijn voor ook aan bij heeft deze naar
    och att det som pa av inte jag ar till med den har ikke og til vi er
    nie sie jest na ze ve bir bu icin ile yang dan untuk dengan tidak ini
    va cua khong la cho si de nu este pentru
    """
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_OTHER = frozenset(_OTHER_WORDS.split())
_ONE, _KNOWN, _FOREIGN, _POINTS = 1, 1 << 16, 1 << 32, 1 << 48
"""One word's part of a packed sum: words, known words, words of other scripts, and points + 1 per word."""
_MASK = (1 << 16) - 1


def words(text: str) -> list[str]:
    """Split a text into words, in lower case without accents."""
    if not text.isascii():
        marks = lambda found: "" if unicodedata.category(found[0]) == "Mn" else " "  # noqa: E731
        text = _NO_WORD.sub(marks, unicodedata.normalize("NFD", text.lower()))
    # Through bytes, which takes a fifth of the time of a regular expression. Most texts are mostly ASCII.
    return text.encode().translate(_IN_WORD).decode().split() if text.isascii() else _WORD.findall(text)


class Pieces(dict[str, bytes]):
    """Maps a word to its pieces' numbers, int32, with a cache.

    ``numbered``: maps ``vocabulary`` numbers to returned numbers.
    """

    longest = 1 << 30
    words: Callable[[str], list[str]]
    """Splits a text into words."""

    def __init__(self, vocabulary: Mapping[str, int], numbered: Callable[[int], int] = int) -> None:
        super().__init__()
        self._vocabulary, self._numbered = vocabulary, numbered

    def __missing__(self, word: str) -> bytes:
        numbers = [self._numbered(number) for number in self.split(word)]
        pieces = pack(f"={len(numbers)}i", *numbers)
        if len(word) <= self.longest:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = pieces
        return pieces

    def numbers(self, text: str) -> NDArray[np.int32]:
        return np.frombuffer(b"".join(map(self.__getitem__, self.words(text))), np.int32)

    def split(self, word: str) -> Sequence[int]:
        raise NotImplementedError


class WordPiece(Pieces):
    """BERT's pieces. Words with unknown parts or over ``LONGEST_WORD`` characters have none."""

    words = staticmethod(words)

    def __init__(self, vocabulary: Mapping[str, int], numbered: Callable[[int], int] = int) -> None:
        super().__init__(vocabulary, numbered)
        self._longest_piece = max((len(piece.removeprefix("##")) for piece in vocabulary), default=0)

    def split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return ()
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(min(len(word), start + self._longest_piece), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return ()
            pieces.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return tuple(pieces)


class English(dict[str, int]):
    """Estimates how much of a text is known, with a cache. ``vocabulary``: index by piece."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> int:
        if len(self) >= CACHED_WORDS:
            self.clear()
        if (len(word) == 1 and word.isascii()) or any(sign.isdigit() for sign in word):
            found = 0  # letters, numbers and codes are of no language
        elif word[0] > "\u024f":
            found = _ONE + _FOREIGN + _POINTS
        else:
            points = 2 if word in _ENGLISH else -1 if word in _OTHER else self._vocabulary.get(word, COMMON) < COMMON
            found = _ONE + (points > 0) * _KNOWN + (points + 1) * _POINTS
        self[word] = found
        return found

    def known(self, text: str) -> KnownShare:
        """Return how much of a text a model of English knows."""
        total = sum(map(self.__getitem__, words(text[:READ])))
        count, known, foreign = total & _MASK, total >> 16 & _MASK, total >> 32 & _MASK
        if count == 0:
            return ALL_KNOWN
        if foreign > count * (1 - LEAST_LATIN):
            return KnownShare(known / count, f"{foreign / count:.0%} of its words are not in Latin script")
        points = (total >> 48) - count
        if count < FEWEST_WORDS or points >= LEAST * count:
            return KnownShare(known / count)
        return KnownShare(known / count, f"only {known / count:.0%} of its words are common English words")
