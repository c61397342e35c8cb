"""Values that others wrote (arguments, results, documents), as text."""

from __future__ import annotations

import json
from typing import Any


def as_text(value: Any) -> str:
    """A value as JSON, with sorted keys; a text as it is. Raises ``RecursionError`` for lists within lists hundreds
    deep."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
