"""Remembers what was found of the trace that several metrics ask about, one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from pandaeval_otel.model import Trace

_Found = TypeVar("_Found")


def once_a_trace(find: Callable[[Trace], _Found]) -> Callable[[Trace], _Found]:
    """Has ``find`` called once for a trace that is asked about several times in a row, as long as no other one comes
    between. Safe on any thread: two may look at the same trace. What is found is shared, so nobody may change it."""
    latest: tuple[Trace, _Found] | None = None

    @wraps(find)
    def found(trace: Trace) -> _Found:
        nonlocal latest
        known = latest
        if known is not None and known[0] is trace:
            return known[1]
        made = find(trace)
        latest = (trace, made)
        return made

    return found
