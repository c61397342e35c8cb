"""A comparison of two filters in words, for a coding agent and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pandaeval_collector.show.view.texts import (
    NO_VALUE,
    dollars,
    estimate,
    interval,
    many,
    number,
    percent,
    redacted_line,
)

Row = Mapping[str, Any]
_PERCENT, _CHANGE, _P = ".0%", "+.0%", ".2g"
MEASURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "us": ("latency (median)", lambda us: f"{us / 1e6:.2f} s"),
    "us95": ("latency (95th percentile)", lambda us: f"{us / 1e6:.2f} s"),
    "tokens": ("tokens (median)", lambda tokens: f"{tokens:,.0f}"),
    "usd": ("cost (median)", dollars),
}
"""By name of a measure: its title, and how to write a value."""


def share_text(share: Row) -> str:
    """Return a passed share with its interval, as ``80% of 70 (69% to 88%), 20 undecided``."""
    if share["share"] is None:
        return NO_VALUE
    text = f"{percent(share['share'])} of {share['passed'] + share['failed']:,}"
    text += f" ({interval(share['low'], share['high'], _PERCENT)})"
    if share["undecided"]:
        text += f", {share['undecided']:,} undecided"
    return text


def change_text(rate: Row) -> str:
    """Return the difference of two shares with its interval, as ``-20% (-33% to -5%)``."""
    return estimate(rate["difference"], rate["low"], rate["high"], _CHANGE)


def p_text(row: Row) -> str:
    """Return a p-value with two digits."""
    return number(row["p"], _P)


def incident_text(row: Row) -> str:
    """Return severity, label and reason of an incident."""
    return redacted_line(f"{row['severity']} {row['label'].replace('_', ' ')}: {row['reason']}", 200)


def measure_texts(row: Row) -> tuple[str, str, str]:
    """Return the title of a measure and its value in both groups."""
    title, form = MEASURES[row["name"]]
    a, b = (NO_VALUE if row[side] is None else form(row[side]) for side in ("a", "b"))
    return title, a, b


def compared_lines(found: Row) -> Iterator[str]:
    """Yield the comparison in lines: rates, then incidents that changed, then latency and cost."""
    a, b = (found[side]["runs"] for side in ("a", "b"))
    yield f"a has {many(a, 'run')}, b has {b:,}; each rate is the passed share of the decided results"
    for rate in found["rates"]:
        sides = ", ".join(f"{side} {share_text(rate[side])}" for side in ("a", "b"))
        yield f"{redacted_line(rate['metric'], 80)}: {sides}; b - a {change_text(rate)}, p {p_text(rate)}"
    for row in found["incidents"]:
        if row["trend"] != "same":
            runs = f"a {row['a']:,}, b {row['b']:,}, p {p_text(row)}"
            yield f"{row['trend']} incident {row['id']}, {runs}: {incident_text(row)}"
    for measure in found["measures"]:
        title, one, other = measure_texts(measure)
        yield f"{title}: a {one}, b {other}"
