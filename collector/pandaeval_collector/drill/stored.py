"""Reads what a collector's data directory keeps of its agents' runs, for a drill over them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pandaeval_collector.receivers.files import Request
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.wanted import Wanted

_PAGE = 200
_LIMIT_S = 120.0


def stored_requests(folder: Path, most: int | None = None) -> Iterator[Request]:
    """The messages of the newest ``most`` runs (``None``: all), each with all of its session. Reads only, beside a
    collector too."""
    finder = Finder(folder, limit_s=_LIMIT_S)
    given: set[str] = set()
    try:
        for trace_id, session in islice(_newest(finder), most):
            for each in (trace_id, *(finder.members(session) if session else ())):
                if each not in given:
                    given.add(each)
                    yield from (Request(logs, data) for logs, data in finder.contents(bytes.fromhex(each)))
    finally:
        finder.close()


def _newest(finder: Finder) -> Iterator[tuple[str, str | None]]:
    """Ids of traces, and of their sessions, newest first."""
    after = None
    while True:
        page = finder.traces(Wanted(), worst_first=False, after=after, limit=_PAGE)
        for row in page.rows:
            yield row.facts["id"], row.session
        after = page.next
        if after is None:
            return
