"""The runs that a command is about: those of files and trace stores, or those that a data directory keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.cli._hand import declared
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.finding import Finder, Listed
from pandaeval_collector.store.listed import Wanted
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.files import BadLine, Request

_PAGE = 200
"""Traces that are read at once from a store."""
READ_LIMIT_S = 120.0
"""Time limit of reading one page: only the caller waits for it."""
_FILES = "Runs, as for `pandaeval evaluate`: files, - for standard input, jaeger:// and tempo:// addresses."
_STORE = "Or the runs that a collector keeps in this data directory, with their labels."


@dataclass(frozen=True, slots=True)
class RunSource:
    """The runs that a command is about: those of ``files`` or those in ``store``."""

    files: Annotated[list[str] | None, typer.Argument(help=_FILES)] = None
    store: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_STORE)] = None

    def requests(self) -> Iterator[Request | BadLine]:
        """Reads every request. Raises ``UserError`` where none can be read, or neither or both are named."""
        if bool(self.files) == (self.store is not None):
            raise UserError("name files or the address of a trace store, or a data directory with --store")
        yield from requests(self.files or ()) if self.store is None else _stored(self.store)


run_source = in_place_of("source", declared(RunSource), RunSource)
"""Gives a command the options that say which runs it is about, in place of its parameter ``source``."""


def _stored(folder: Path) -> Iterator[Request]:
    """Yields the messages of all runs that a data directory keeps, newest first, each with all of its session. Reads
    only, also while a collector runs."""
    if not (folder / FILE_NAME).is_file():
        raise UserError(f"--store {folder}: there is no store in it; `pandaeval collector` makes one")
    given: set[str] = set()
    with closing(Finder(folder, limit_s=READ_LIMIT_S)) as finder:
        for row in stored_rows(finder, Wanted()):
            for trace_id in (row.facts["id"], *(finder.members(row.session) if row.session else ())):
                if trace_id not in given:
                    given.add(trace_id)
                    yield from (Request(logs, data) for logs, data in finder.contents(bytes.fromhex(trace_id)))


def stored_rows(finder: Finder, wanted: Wanted) -> Iterator[Listed]:
    """Yields the stored traces newest first, so that traces scored meanwhile are left out and none comes twice."""
    after = None
    while True:
        page = finder.traces(wanted, worst_first=False, after=after, limit=_PAGE)
        yield from page.rows
        after = page.next
        if after is None:
            return
