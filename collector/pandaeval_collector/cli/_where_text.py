"""The text of ``--where``: conditions on traces, as ``agent=desk,status=error,time=2026-01-01..2026-01-31``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import FILTERS, STATUSES, Filter
from pandaeval_collector.base.section import parse_moment

EVER = (0, 1 << 63)
"""All times, in Unix nanoseconds."""
_NEXT = re.compile(r",(?=\s*[a-z_]+\s*=)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NS = 1_000_000_000


def conditions_of(text: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the conditions of a text as key and value. ``known``: the keys. Raises ``UserError`` for other text.

    A comma separates conditions only if ``key=`` follows, so names can contain commas.
    """
    for condition in _NEXT.split(text.strip()):
        yield _condition(condition, known)


def api_filters(text: str, filters: Iterable[Filter] = FILTERS) -> dict[str, Any]:
    """Return the conditions of a text as filters of the API; none for an empty text. Raises ``UserError``."""
    known = [*(each.name for each in filters if each.kind != "time"), "time"]
    found: dict[str, Any] = {}
    for key, value in conditions_of(text, known) if text.strip() else ():
        if key == "attribute":
            found.setdefault(key, []).append(value)
            continue
        if key in found or (key == "time" and found.keys() & {"since", "until"}):
            raise wrong(text, f"write {key} once")
        found |= _api_times(value) if key == "time" else {key: value}
    return found


def time_range_of(value: str) -> tuple[int, int]:
    """Return FROM and TO in Unix nanoseconds; TO is excluded. Raises ``UserError``."""
    first, dots, last = (part.strip() for part in value.partition(".."))
    if not dots:
        raise wrong(f"time={value}", "write FROM..TO, as in 2026-01-31T08:00..2026-01-31T12:00; either can be empty")
    span = _moment(first, False) if first else EVER[0], _moment(last, True) if last else EVER[1]
    if span[0] >= span[1]:
        raise wrong(f"time={value}", "FROM must be before TO")
    return span


def wrong(text: str, cure: str) -> UserError:
    """Return the error for a text of ``--where``."""
    return UserError(f"--where {text}: {cure}")


def _condition(text: str, known: Collection[str]) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise wrong(text, f"write KEY=VALUE, where KEY is one of {', '.join(known)}")
    if key not in known:
        raise wrong(text, f"unknown key {key!r}; known: {', '.join(known)}")
    if not value:
        raise wrong(text, "the value is missing after =")
    if key == "attribute" and "=" not in value:
        raise wrong(text, "write attribute=KEY=VALUE, as in attribute=service.version=1.4")
    if key == "status" and value not in STATUSES:
        raise wrong(f"status={value}", "write error or ok")
    return key, value


def _api_times(value: str) -> dict[str, str]:
    times = zip(("since", "until"), time_range_of(value), EVER, strict=True)
    return {name: datetime.fromtimestamp(ns / _NS, UTC).isoformat() for name, ns, ever in times if ns != ever}


def _moment(text: str, is_end: bool) -> int:
    """Return Unix nanoseconds of a time or an age.

    A day without a time means the beginning of the day or, if ``is_end``, the end.
    """
    try:
        moment = parse_moment(text)
        if is_end and _DAY.fullmatch(text):
            moment += timedelta(days=1)
    except (ValueError, OverflowError):
        cure = "is not a time; write RFC 3339, as in 2026-01-31T08:00:00Z, a day, or an age such as 7d"
        raise wrong(f"time: {text}", cure) from None
    return round(moment.timestamp() * 1_000_000) * 1000
