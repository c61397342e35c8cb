"""Finds the store that a command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.cli._config import StoreFolder
from pandaeval_collector.cli._run_place import over_http
from pandaeval_collector.store.connection import FILE_NAME

_URL = "Read the data directory of this running collector (server.http)."
_Url = Annotated[str | None, typer.Option(metavar="URL", envvar="PANDAEVAL_URL", help=_URL)]


def folder_of(store: Path | None = None, url: str | None = None) -> Path | None:
    """Return the data directory of the options; ``None`` for the configured directory."""
    if store is not None or url is None:
        return store
    with over_http(url) as api:
        data = api.get("/overview")["data"]
    if data is None or not (Path(data) / FILE_NAME).is_file():
        raise UserError(f"--url {url}: its data directory {one_printable_line(str(data))} is not on this machine")
    return Path(data)


stored = in_place_of("store", {"store": (StoreFolder, None), "url": (_Url, None)}, folder_of)
"""Gives a command the options that say which store it reads, in place of its parameter ``store``, a data directory or
``None`` for that of the configuration. ``UserError`` where the collector's is not on this machine."""
