"""Where a drill reads runs: as ``pandaeval evaluate`` does, or from a collector's data directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandaeval_collector.receivers.files import BadLine, Request

_PAGE = 200


def requests_of(files: Sequence[str], store: Path | None) -> Iterator[Request | BadLine]:
    """Every request. Raises ``UserError`` where none can be read, or neither or both are named."""
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.cli._inputs import requests

    if bool(files) == (store is not None):
        raise UserError("name files or the address of a trace store, or a data directory with --store")
    yield from requests(files) if store is None else _stored(store)


def _stored(folder: Path) -> Iterator[Request]:
    """The spans that a data directory keeps of its agents' runs, newest first. Reads only, beside a collector too."""
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.receivers.files import Request
    from pandaeval_collector.store.connection import FILE_NAME
    from pandaeval_collector.store.finding import Finder
    from pandaeval_collector.store.wanted import Wanted

    if not (folder / FILE_NAME).is_file():
        raise UserError(f"--store {folder}: there is no store in it; `pandaeval collector` makes one")
    finder, after = Finder(folder, limit_s=120.0), None
    try:
        while True:
            page = finder.traces(Wanted(), worst_first=False, after=after, limit=_PAGE)
            for row in page.rows:
                for logs, data in finder.contents(bytes.fromhex(row.facts["id"])):
                    yield Request(logs, data)
            after = page.next
            if after is None:
                return
    finally:
        finder.close()
