"""How many examples a property is tried with: an eighth in the run that everybody waits for, all of them with
``EXAMPLES=all``. They are others each time."""

from __future__ import annotations

import os

_PART, _FEWEST = 8, 5


def examples(number: int) -> int:
    """What stands for ``number`` in this run."""
    return number if os.environ.get("EXAMPLES") == "all" else min(number, max(_FEWEST, number // _PART))
