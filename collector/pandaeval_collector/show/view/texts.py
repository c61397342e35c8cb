"""Uniform text of times, numbers, intervals, costs and foreign text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.judge.redact import redact
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided

_MARK, _ALMOST_ALL = 60, 0.995
BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")
NO_VALUE = "-"
"""Placeholder for a missing value."""
MARGIN = 6000
"""Extra characters searched for secrets after the shown text, because a part of a key is not recognised."""


def redacted_line(text: Any, most: int = 300) -> str:
    """Return foreign text redacted, on one line of about ``most`` characters."""
    return shortened(one_line(hidden(elided(str(text), most + MARGIN))), most)


def shortened(text: str, most: int) -> str:
    """Cut text to about ``most`` characters, unless little would be cut."""
    return text if len(text) <= most + _MARK else elided(text, most)


def hidden(text: str) -> str:
    """Redact foreign text, and remove imitations of our words."""
    return neutral(redact(text))


def many(count: int, what: str) -> str:
    """Return a count with its noun, as ``1,204 traces``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def units(incident: Mapping[str, Any]) -> str:
    """Return the number of an incident's runs, or of its sessions."""
    return many(incident["runs"], "session" if incident["metric"].startswith("session.") else "run")


def moment(milliseconds: float) -> str:
    """Return a Unix time as RFC 3339, in whole seconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # spans can contain any time
        return "an invalid time"


def number(value: float | None, form: str = ".2f") -> str:
    """Format a score (two places) or another value; never ``-0.00``."""
    return NO_VALUE if value is None else format(value, form.replace(".", "z.", 1))


def percent(share: float) -> str:
    """Return ``75%``, and ``over 99%`` instead of ``100%`` if a part is missing."""
    return "over 99%" if _ALMOST_ALL <= share < 1 else f"{share:.0%}"


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """Return ``0.31 to 0.88``, or ``""``."""
    return "" if low is None or high is None else f"{number(low, form)} to {number(high, form)}"


def estimate(value: float | None, low: float | None, high: float | None, form: str = ".2f") -> str:
    """Return ``0.62 (0.31 to 0.88)``."""
    between = interval(low, high, form)
    return number(value, form) + (f" ({between})" if between else "")


def dollars(usd: float | None) -> str:
    """Return ``$0.0123``."""
    return "at an unknown price" if usd is None else f"${usd:.4f}"


def csv_cell(value: object) -> str:
    """Return a value as a cell of CSV; a text that a spreadsheet would take for a formula gets a leading ``'``."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return f"{value:.10g}" if isinstance(value, float) else str(value)
    text = str(value)
    return f"'{text}" if text.startswith(BEGINS_FORMULA) else text
