"""Attacks that need a collector, or a command, of their own. Each is given an empty folder and a scale, and returns
what was wrong, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Alone = Callable[[Path, int], Iterable[str]]
ALONE: dict[str, Alone] = {}


def alone(run: Alone) -> Alone:
    """Registers an attack under its function's name, ``_`` as blank."""
    ALONE[run.__name__.replace("_", " ")] = run
    return run
