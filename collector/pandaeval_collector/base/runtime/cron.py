"""Time tables of five fields, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def is_cron(text: str) -> bool:
    """Whether a text is a time table: minute, hour, day, month and weekday."""
    from croniter import croniter

    return len(text.split()) == 5 and croniter.is_valid(text)


def next_time(cron: str, after: float) -> float:
    """When a time table is due first after a time; both Unix seconds, the fields of ``cron`` in UTC."""
    from croniter import croniter

    found: datetime = croniter(cron, datetime.fromtimestamp(after, UTC)).get_next(datetime)
    return found.timestamp()
