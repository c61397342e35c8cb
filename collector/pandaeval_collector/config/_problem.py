"""Configuration problems and their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line

KeyPath = tuple[str | int, ...]
_LONGEST = 2000
"""Maximum characters of a problem, because a key or a path can have a million."""


@dataclass(frozen=True, slots=True, order=True)
class WrittenAt:
    """Origin of a value: file (``line``, ``column`` from 1; 0: whole file), environment variable or command line.

    ``key``: if ``source`` implies it.
    """

    source: str
    line: int = 0
    column: int = 0
    key: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem to fix.

    ``key``: dotted (``close.quiet``) or empty. ``place``: ``None`` if unknown. ``others``: further keys.
    """

    key: str
    message: str
    place: WrittenAt | None = None
    others: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key, *self.others)

    def __str__(self) -> str:
        where = str(self.place or "")
        if self.place is None or self.place.key != self.key:
            where = f"{where} {self.key}".strip()
        text = one_printable_line(": ".join(filter(None, (where, self.message))))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST - 1]}…"
        return text


class ConfigError(UserError):
    """The configuration is invalid. ``problems``: all, files first, in line order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        def position(problem: Problem) -> tuple[bool, WrittenAt, str]:
            place = problem.place or WrittenAt("")
            return not place.line, place, problem.key

        self.problems = tuple(sorted(problems, key=position))
        super().__init__("\n".join(str(problem) for problem in self.problems))
