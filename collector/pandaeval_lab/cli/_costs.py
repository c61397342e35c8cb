"""Prints costs of runs and verdicts by session, user, agent and day."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from pandaeval_collector.cli._output import print_list
from pandaeval_collector.show.view.texts import NONE, dollars
from pandaeval_collector.store.costs import read_costs
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted

_MOST = 10


def print_costs(finder: Finder, out: Console) -> None:
    rows = [*_rows(finder)]
    if rows:
        print_list(("by", "name", "runs", "tokens", "cost"), rows, "Cost of the runs", out)


def priced(usd: float | None, unpriced: int) -> str:
    """Return a cost as text. ``unpriced``: runs or verdicts without a price."""
    if usd is None:
        return "unknown" if unpriced else NONE
    return f"{'at least ' if unpriced else ''}{dollars(usd)}"


def _rows(finder: Finder) -> Iterator[tuple[str, str, int, str, str]]:
    every = finder.count(Wanted())
    for by in ("agent", "user", "session", "day"):
        for name, runs, into, out, usd, unpriced, *_ in read_costs(finder, Wanted(), by, _MOST, every):
            if name is not None and (into or out or usd):
                yield by, name, runs, f"{into + out:,}", priced(usd, unpriced)
