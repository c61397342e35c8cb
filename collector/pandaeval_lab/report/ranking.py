"""The one order in which traces and sessions are shown: worst first."""

from __future__ import annotations

from collections.abc import Iterable

from pandaeval_collector.store.listed import NO_SCORE


def rank(results: Iterable[tuple[bool | None, float | None]], broken: int, name: str) -> tuple[bool, float, int, str]:
    """Returns a key to sort by: what failed first, then by the lowest signal (0..1, :data:`NO_SCORE` where nothing is
    scored), then by how many results and runs failed; ``name`` decides between equals. ``results``: success and signal
    of each; ``broken``: how many runs ended with an error, which is as bad as can be."""
    failures, lowest = broken, 0.0 if broken else NO_SCORE
    for success, signal in results:
        failures += success is False
        lowest = lowest if signal is None else min(lowest, signal)
    return not failures, lowest, -failures, name
