"""Instruments of scores and of the collector's own metrics."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from pandaeval_otel.base.names import bounded

Attributes = tuple[tuple[str, str], ...]
"""Attributes of a series, without empty attributes."""

MAX_SERIES = 10_000
"""Default maximum of all series, because labels within their limits can still have too many combinations."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument.

    ``kind``: ``histogram | counter | gauge``. ``unit``: UCUM, or a word in braces. ``bounds``: inclusive upper bounds.
    """

    name: str
    kind: str
    unit: str
    description: str
    bounds: tuple[float, ...] = ()


def instruments(table: str, bounds: Mapping[str, tuple[float, ...]] | None = None) -> Mapping[str, Instrument]:
    """Parse a table of instruments: name, kind, unit and description per line. ``bounds``: by name."""
    lines = (line.split(" ", 3) for line in table.strip().replace("\n  ", " ").split("\n"))
    given = bounds or {}
    return {name: Instrument(name, kind, unit, text, given.get(name, ())) for name, kind, unit, text in lines}


@functools.lru_cache(maxsize=1024)  # each request needs a few frequent combinations several times
def attributes(**values: str) -> Attributes:
    """Return sorted ``pandaeval.*`` attributes by their last words, without empty values."""
    return tuple((f"pandaeval.{key}", bounded(value)) for key, value in sorted(values.items()) if value)
