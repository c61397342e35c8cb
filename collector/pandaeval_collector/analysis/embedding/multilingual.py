"""The embedder for many languages inside the package: one vector per piece of a word, summed. Needs numpy alone.

``multilingual-1.npz`` was distilled by ``collector/distill/multilingual``; ``docs/embedders.md`` says which languages
it knows and how well. Case-blind; word order and negation do not count: a sense of the subject, not of the truth.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from pandaeval_collector.analysis.embedding._distilled import DistilledEmbedder, Table
from pandaeval_collector.analysis.embedding._protocol import Bands, Embedder, EmbedderError, KnownShare
from pandaeval_collector.analysis.embedding._unigram import Unigram

SCHEME = "multilingual"
# Measured by `python tests/bench/embedding_languages.py FOLDER`, on dialogues. Nothing is sure: answers to what
# was asked are found at any cosine.
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


class _Model:
    """The file in memory, and the pieces of words as their places in the table."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as archive:
            names = archive["vocabulary"].tobytes().decode("utf-8").split("\n")
            costs = archive["costs"].tobytes()
            self.table = Table(archive["rows"], archive["scales"])
        self.pieces = Unigram({piece: number for number, piece in enumerate(names)}, costs, self.table.place)


class MultilingualEmbedder(DistilledEmbedder[_Model]):
    """Implements :class:`Embedder`."""

    id = "multilingual-1"
    bands: Bands | None = BANDS

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(_Model, path)

    def known(self, text: str) -> KnownShare:
        """Tells it by script alone, from the first ``_LOOKED_AT`` characters: a language of its own script is told, one
        that shares its script with a language that the model learned is not."""
        letters = len(_LETTER.findall(text[:_LOOKED_AT]))
        share = len(KNOWN_LETTER.findall(text[:_LOOKED_AT])) / letters if letters else 1.0
        if share >= _ENOUGH:
            return KnownShare(min(1.0, share))
        return KnownShare(share, f"{share:.0%} of its letters are of a script that the model learned")


def open(argument: str) -> Embedder:
    """The embedder; it takes no argument."""
    if argument:
        message = f"embedder 'multilingual' takes no argument, but got {argument!r}: write just 'multilingual'"
        raise EmbedderError(message)
    return MultilingualEmbedder()
