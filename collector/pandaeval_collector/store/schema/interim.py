"""Results of open sessions beside those that are for good."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    -- Whether this result or an earlier one of the same unit and metric is for good. Those of an open session are not.
    ALTER TABLE results ADD COLUMN settled INTEGER NOT NULL DEFAULT 1;
    """,
)
