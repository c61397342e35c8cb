"""The values that stand in the sources, each with the time from which the agent had it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pandaeval_collector.signals.grounding._fold import squeezed
from pandaeval_collector.signals.grounding._index import Index
from pandaeval_collector.signals.grounding._sources import Source


class Known:
    """The sources, and what stands in them: read once, when it is first asked for. Every question names the time by
    which something had to be known.

    ``numbers``: of all kinds, of identifiers too; ``plain``: those to calculate with; ``said``: the user's. ``keys``:
    identifiers without case and separators."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self._index: Index | None = None
        self._squeezed: list[tuple[int, str]] | None = None
        self._sorted: list[float] | None = None

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = Index(self.sources)
        return self._index

    def has_key(self, key: str, at: int) -> bool:
        """Whether an identifier, an address or a name stands there by then, in any spelling."""
        since = self.index.keys.get(key)
        if since is not None and since <= at:
            return True
        if key.isdigit() and len(key) < 9:
            return False
        return any(since <= at and key in text for since, text in self._texts())

    def ends_with(self, digits: str, at: int) -> bool:
        """Whether an identifier ends with (or begins with) these digits: "the card ending in 4421"."""
        return any(since <= at and (key.endswith(digits) or key.startswith(digits)) for key, since in self.index.keys.items())

    def near(self, number: float, tolerance: float, at: int) -> bool:
        """Whether a number stands there by then that is this one, give or take ``tolerance``."""
        if self._sorted is None:
            self._sorted = sorted(self.index.numbers)
        place = bisect_left(self._sorted, number - tolerance)
        while place < len(self._sorted) and self._sorted[place] <= number + tolerance:
            if self.index.numbers[self._sorted[place]] <= at:
                return True
            place += 1
        return False

    def spelled(self, words: tuple[str, ...], at: int) -> bool:
        """Whether one of these words stands there by then."""
        return any(
            source.at <= at and any(_word_in(word, source.text) for word in words) for source in self.sources
        )

    def _texts(self) -> list[tuple[int, str]]:
        if self._squeezed is None:
            self._squeezed = [(source.at, squeezed(source.text)) for source in self.sources]
        return self._squeezed


def _word_in(word: str, text: str) -> bool:
    found = text.casefold().find(word)
    while found >= 0:
        after = found + len(word)
        before_free = found == 0 or not text[found - 1].isalpha() or not word.isascii()
        if before_free and (after >= len(text) or not text[after].isalpha() or not word.isascii()):
            return True
        found = text.casefold().find(word, after)
    return False
