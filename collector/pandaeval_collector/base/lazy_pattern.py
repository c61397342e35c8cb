"""Regular expressions compiled at first use, for a fast start."""

from __future__ import annotations

import re
from typing import Any, cast


def lazily(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a lazy ``re.compile`` pattern, case-insensitive by default. Functions of ``re`` do not accept it."""
    return cast(re.Pattern[str], _Uncompiled(pattern, flags))


class _Uncompiled:
    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._arguments), name)
        setattr(self, name, found)
        return found
