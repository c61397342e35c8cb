"""Time tables of five fields, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def is_cron(text: str) -> bool:
    """Return whether a text is a time table: minute, hour, day, month and weekday, and due on some day."""
    from croniter import croniter

    return len(text.split()) == 5 and croniter.is_valid(text) and next_time(text, 0.0) is not None


def next_time(cron: str, after: float) -> float | None:
    """Return when a time table is due first after a time; both Unix seconds, the fields of ``cron`` in UTC. ``None``:
    never, as on a 31st of February."""
    from croniter import CroniterBadDateError, croniter

    try:
        found: datetime = croniter(cron, datetime.fromtimestamp(after, UTC)).get_next(datetime)
    except CroniterBadDateError:
        return None
    return found.timestamp()
