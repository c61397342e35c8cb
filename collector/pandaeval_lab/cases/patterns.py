"""Regular expressions that users and traces bring: searched in time that grows linearly with the text.

Python's own engine may take longer than anybody waits for 60 characters, holds the interpreter meanwhile, and no
deadline ends it. RE2 has no such patterns: what it cannot search in linear time it refuses to compile.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_CURE = (
    "patterns are RE2's (https://github.com/google/re2/wiki/Syntax): no lookaround, no backreference, \\z for the end "
    "of the text, at most 1,000 repetitions"
)


class PatternError(ValueError):
    """A pattern cannot be searched for; the text says why, and what could be."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Returns the pattern with RE2's ``search(text)``, safe on any thread. Raises :class:`PatternError`."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0] if error.args else ""
        said = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise PatternError(f"{said}: {_CURE}") from error
