"""Where a drill reads runs: as ``pandaeval evaluate`` does, or from a collector's data directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandaeval_collector.receivers.files import BadLine, Request


def requests_of(files: Sequence[str], store: Path | None) -> Iterator[Request | BadLine]:
    """Every request. Raises ``UserError`` where none can be read, or neither or both are named."""
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.cli._inputs import requests
    from pandaeval_collector.drill.stored import stored_requests

    if bool(files) == (store is not None):
        raise UserError("name files or the address of a trace store, or a data directory with --store")
    yield from requests(files) if store is None else stored_requests(_existing(store))


def _existing(folder: Path) -> Path:
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.store.connection import FILE_NAME

    if not (folder / FILE_NAME).is_file():
        raise UserError(f"--store {folder}: there is no store in it; `pandaeval collector` makes one")
    return folder
