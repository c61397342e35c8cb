"""What is worst among results, traces and sessions of a run over files."""

from __future__ import annotations

from collections.abc import Iterable

from pandaeval_collector.show.view.results import ResultView
from pandaeval_collector.store.listed import NO_SCORE


def worse(known: ResultView | None, row: ResultView) -> ResultView | None:
    """Returns the more urgent result, else the known one; never one without a signal."""
    if row.signal is None or known is None or known.signal is None:
        return known if row.signal is None else row
    return row if row.urgency < known.urgency else known


def rank(results: Iterable[tuple[bool | None, float | None]], broken: int, name: str) -> tuple[bool, float, int, str]:
    """Returns a key to sort by: what failed first, then by the lowest signal (0..1, :data:`NO_SCORE` where nothing is
    scored), then by how many results and runs failed; ``name`` decides between equals. ``results``: success and signal
    of each; ``broken``: how many runs ended with an error, which is as bad as can be."""
    failures, lowest = broken, 0.0 if broken else NO_SCORE
    for success, signal in results:
        failures += success is False
        lowest = lowest if signal is None else min(lowest, signal)
    return not failures, lowest, -failures, name
