"""Whether a text is English, for models that know no other language.

BERT's vocabulary is ordered by how common a piece is, and a word of any Latin language has pieces in it: that a text
has pieces does not make it known. Of English prose nine words of ten are common as a whole, and every second is a
function word; of other languages a fifth are common, and hardly one is a function word of English.
"""

from __future__ import annotations

from collections.abc import Mapping

from pandaeval_collector.analysis.embedding._protocol import ALL_KNOWN, KnownShare
from pandaeval_collector.analysis.embedding._wordpiece import CACHED_WORDS, words

COMMON = 8000
"""So many pieces at the head of the vocabulary count as common words."""
LEAST = 0.6
"""Points per word that make a text English: 2 for a function word, 1 for a common one, -1 for one of another language's
function words."""
READ = 400
"""Characters at the beginning that stand for all."""
FEWEST_WORDS = 4
"""Fewer are taken as they come, if their script is Latin: names and codes are known in no language."""
LEAST_LATIN = 0.5

# Those of other languages' words that are English ones, too (in, die, on, was, so), stand here as English or nowhere.
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

_WORD, _KNOWN, _FOREIGN, _POINTS = 1, 1 << 16, 1 << 32, 1 << 48
"""What a word adds to a sum of all: one to the words, to those known, to those of other scripts, and points + 1."""
_MASK = (1 << 16) - 1


class English(dict[str, int]):
    """From a word to what it adds up to; remembers words it has seen, at most ``CACHED_WORDS`` of them.
    ``vocabulary``: from a piece to its place."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> int:
        if len(self) >= CACHED_WORDS:
            self.clear()
        found = self[word] = self._weighed(word)
        return found

    def known(self, text: str) -> KnownShare:
        """Tells how much of a text a model knows that knows English alone."""
        total = sum(map(self.__getitem__, words(text[:READ])))
        count, known, foreign = total & _MASK, total >> 16 & _MASK, total >> 32 & _MASK
        if count == 0:
            return ALL_KNOWN
        if foreign > count * (1 - LEAST_LATIN):
            return KnownShare(known / count, f"{foreign / count:.0%} of its words are in another script than Latin")
        points = (total >> 48) - count
        if count < FEWEST_WORDS or points >= LEAST * count:
            return KnownShare(known / count)
        return KnownShare(known / count, f"it is not English: {known / count:.0%} of its words are common English ones")

    def _weighed(self, word: str) -> int:
        if (len(word) == 1 and word.isascii()) or any(sign.isdigit() for sign in word):
            return 0  # letters, numbers and codes are of no language
        if word[0] > "\u024f":
            return _WORD + _FOREIGN + _POINTS
        points = 2 if word in _ENGLISH else -1 if word in _OTHER else self._vocabulary.get(word, COMMON) < COMMON
        return _WORD + (points > 0) * _KNOWN + (points + 1) * _POINTS
