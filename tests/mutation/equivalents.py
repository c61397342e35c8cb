"""Changes of the code that nobody can notice, as ``equivalent.toml`` names them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


class Equivalents:
    """``[[kind]]``: a change within what its ``pattern`` matches, wherever it is; a group of it has to stay as it is.
    ``[[equivalent]]``: the line that a mutant of a ``function`` has (with a minus: that it lost)."""

    def __init__(self, file: Path) -> None:
        said = tomllib.loads(file.read_text())
        self._kinds = [re.compile(each["pattern"]) for each in said.get("kind", ())]
        self._lines = {
            (each["function"], _one_blank(line)) for each in said.get("equivalent", ()) for line in each["lines"]
        }

    def has(self, function: str, difference: str) -> bool:
        """``difference``: of a mutant, as a unified one."""
        lines = [line for line in difference.splitlines() if line[:3] not in ("---", "+++")]
        before, after = (_one_blank(" ".join(line[1:] for line in lines if line[0] == sign)) for sign in "-+")
        if (function, after or f"- {before}") in self._lines:
            return True
        return any(_without(kind, before) == _without(kind, after) for kind in self._kinds)


def _without(kind: re.Pattern[str], line: str) -> str:
    return kind.sub(lambda found: "".join(each or "" for each in found.groups()), line)


def _one_blank(line: str) -> str:
    return " ".join(line.split())
