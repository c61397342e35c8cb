"""Finds the store that a command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.cli._config import StoreFolder
from pandaeval_collector.cli._run_place import data_directory

_URL = "Use the data directory of this running collector."
_Url = Annotated[str | None, typer.Option(metavar="URL", envvar="PANDAEVAL_URL", help=_URL)]


def folder_of(store: Path | None = None, url: str | None = None) -> Path | None:
    """Return the data directory of the options; ``None`` for the configured directory."""
    return store if store is not None or url is None else data_directory(url)


stored = in_place_of("store", {"store": (StoreFolder, None), "url": (_Url, None)}, folder_of)
"""Gives a command the options that say which store it reads, in place of its parameter ``store``, a data directory or
``None`` for that of the configuration. ``UserError`` where the collector's is not on this machine."""
