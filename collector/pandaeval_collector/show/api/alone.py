"""The API over a data directory, for reading, without a collector."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.types import ASGIApp

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.run_reads import RunReads


@contextmanager
def alone(folder: Path) -> Iterator[ASGIApp]:
    """The application. Raises ``UserError`` where there is no store that can be read. What changes something fails."""
    reads = Reads(Finder(folder))
    try:
        reads.finder.change()
        yield api_app(reads, work(), "0", stored=RunReads(reads.finder.connection))
    except (FileNotFoundError, sqlite3.OperationalError) as error:
        raise UserError(
            f"there is no store to be read in {folder} ({error}): name a collector's data directory"
        ) from error
    finally:
        reads.close()


def work() -> Work:
    """That of a collector that does nothing."""
    return Work(jobs=dict, spent=float)
