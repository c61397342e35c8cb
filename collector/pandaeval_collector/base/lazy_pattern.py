"""Regular expressions that are compiled at their first use: large ones that few texts need would hold up a start."""

from __future__ import annotations

import re
from typing import Any, cast


def lazily(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a pattern as of ``re.compile``, by its methods and attributes; functions of ``re`` do not take it for a
    pattern. Case does not matter, unless other ``flags`` are given."""
    return cast(re.Pattern[str], _Uncompiled(pattern, flags))


class _Uncompiled:
    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern and keep its attribute on this object, so that each name is asked for once."""
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._arguments), name)
        setattr(self, name, found)
        return found
