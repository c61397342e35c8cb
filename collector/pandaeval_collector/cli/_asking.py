"""What commands that ask a collector share."""

from __future__ import annotations

import os


def token() -> str | None:
    """What to show a collector, from PANDAEVAL_TOKEN, as the span processor does."""
    return os.environ.get("PANDAEVAL_TOKEN", "").strip() or None
