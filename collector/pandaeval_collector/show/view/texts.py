"""Values as text, written alike at every door: times, numbers, intervals, costs, and text of others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.judge.redact import redact
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided

_MARK = 60
NONE = "-"
"""Stands for a value that there is not."""
MARGIN = 6000
"""So many more characters of a text are looked through for secrets than are shown: half a key looks like none."""


def said(text: Any, most: int = 300) -> str:
    """Return foreign text on a single line of at most about ``most`` characters, without secrets."""
    return shortened(one_line(hidden(elided(str(text), most + MARGIN))), most)


def shortened(text: str, most: int) -> str:
    """Return text of at most about ``most`` characters. A text that is hardly longer stays whole: the words about what
    was cut would be longer than that."""
    return text if len(text) <= most + _MARK else elided(text, most)


def hidden(text: str) -> str:
    """Return foreign text without secrets, and without imitations of our words."""
    return neutral(redact(text))


def many(count: int, what: str) -> str:
    """Return a count with its noun, as ``1,204 traces``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(milliseconds: float) -> str:
    """Return a Unix time as RFC 3339, in whole seconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # spans may say any time
        return "an invalid time"


def number(value: float | None, form: str = ".2f") -> str:
    """Return a score (two places), or a value by another format, such as ``.3f`` for a rate; never ``-0.00``."""
    return NONE if value is None else format(value, form.replace(".", "z.", 1))


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """Return an interval as ``0.31 to 0.88``; ``""`` where it is unknown."""
    return "" if low is None or high is None else f"{number(low, form)} to {number(high, form)}"


def estimate(value: float | None, low: float | None, high: float | None, form: str = ".2f") -> str:
    """Return a value with its interval, as ``0.62 (0.31 to 0.88)``."""
    between = interval(low, high, form)
    return number(value, form) + (f" ({between})" if between else "")


def dollars(usd: float | None) -> str:
    """Return a cost as ``$0.0123``."""
    return "at an unknown price" if usd is None else f"${usd:.4f}"
