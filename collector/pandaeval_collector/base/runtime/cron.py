"""Time tables of five fields, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def is_cron(text: str) -> bool:
    """Return whether a text is a valid time table that is ever due."""
    from croniter import croniter

    return len(text.split()) == 5 and croniter.is_valid(text) and next_time(text, 0.0) is not None


def next_time(cron: str, after: float) -> float | None:
    """Return the next due time of ``cron`` (in UTC) after ``after``, in Unix seconds; ``None`` if never."""
    from croniter import CroniterBadDateError, croniter

    try:
        found: datetime = croniter(cron, datetime.fromtimestamp(after, UTC)).get_next(datetime)
    except CroniterBadDateError:
        return None
    return found.timestamp()
