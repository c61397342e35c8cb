"""The registry of attacks on a running collector.

An attack runs at scale 1 and 10. It returns counts of answers, clear unless in :data:`UNCLEAR`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import support.hostile
from support.hostile import doors

TAKEN = "taken"
"""Answers that are always wrong."""
UNCLEAR = frozenset({doors.NO_ANSWER, TAKEN, "HTTP 500", "HTTP 502", "gRPC INTERNAL", "gRPC UNKNOWN"})


@dataclass(frozen=True, slots=True)
class Target:
    """The attacked collector's addresses, process and folder."""

    grpc: str
    http: str
    health: str
    pid: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Ground:
    """A collector setup. ``prepare``: returns more settings; ``authority``: CA certificate file."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path, int], Mapping[str, str]] | None = None
    authority: str | None = None


Attack = Callable[[Target, int], Iterable[str]]
OPEN = Ground("open")


@dataclass(frozen=True, slots=True)
class Known:
    """An attack and its setup. ``holds``: blocks the collector, so traffic counts only afterwards."""

    run: Attack
    ground: Ground
    holds: bool = False


_known: dict[str, Known] = {}


def attack(ground: Ground = OPEN, *, holds: bool = False) -> Callable[[Attack], Attack]:
    def register(run: Attack) -> Attack:
        _known[run.__name__.replace("_", " ")] = Known(run, ground, holds)
        return run

    return register


@cache
def attacks() -> Mapping[str, Known]:
    for module in pkgutil.iter_modules(support.hostile.__path__):
        importlib.import_module(f"support.hostile.{module.name}")
    return _known


def strike(name: str, target: Target, scale: int) -> Counter[str]:
    """Run an attack; return the counts of answers."""
    return Counter(attacks()[name].run(target, scale))


def at_once(calls: Sequence[Callable[[], str]], threads: int = 20) -> Iterable[str]:
    """Return the calls' results, ``number`` in parallel."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda call: call(), calls)
