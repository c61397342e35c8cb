"""The number of property examples: an eighth by default, all with ``EXAMPLES=all``."""

from __future__ import annotations

import os

_PART, _FEWEST = 8, 5


def examples(number: int) -> int:
    """Return the example count of this run for ``number``."""
    return number if os.environ.get("EXAMPLES") == "all" else min(number, max(_FEWEST, number // _PART))
