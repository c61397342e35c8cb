"""Equivalent mutants, from ``equivalent.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


class Equivalents:
    """``[[kind]]``: changes within ``pattern``. ``[[equivalent]]``: a changed line of a ``function``."""

    def __init__(self, file: Path) -> None:
        document = tomllib.loads(file.read_text())
        self._kinds = [re.compile(each["pattern"]) for each in document.get("kind", ())]
        self._lines = {
            (each["function"], _one_blank(line)) for each in document.get("equivalent", ()) for line in each["lines"]
        }

    def has(self, function: str, difference: str) -> bool:
        """``difference``: a mutant's unified diff."""
        lines = [line for line in difference.splitlines() if line[:3] not in ("---", "+++")]
        before, after = (_one_blank(" ".join(line[1:] for line in lines if line[0] == sign)) for sign in "-+")
        if (function, after or f"- {before}") in self._lines:
            return True
        return any(_without(kind, before) == _without(kind, after) for kind in self._kinds)


def _without(kind: re.Pattern[str], line: str) -> str:
    return kind.sub(lambda found: "".join(each or "" for each in found.groups()), line)


def _one_blank(line: str) -> str:
    return " ".join(line.split())
