"""Where a command reads runs: as ``pandaeval evaluate`` does, or from a collector's data directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandaeval_collector.cli._hand import in_place_of

if TYPE_CHECKING:
    from pandaeval_collector.receivers.files import BadLine, Request

_NAMED = 2
"""So many files are named where runs are told from others."""
_FILES = "Runs, as for `pandaeval evaluate`: files, - for standard input, jaeger:// and tempo:// addresses."
_STORE = "Or the runs that a collector keeps in this data directory, with their labels."


@dataclass(frozen=True, slots=True)
class RunSource:
    """The runs that a command is about: those of ``files`` or those in ``store``."""

    files: Sequence[str] | None
    store: Path | None

    def __str__(self) -> str:
        names = self.files or [f"store {self.store}"]
        more = len(names) - _NAMED
        return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")

    def requests(self) -> Iterator[Request | BadLine]:
        """Reads every request. Raises ``UserError`` where none can be read, or neither or both are named."""
        from pandaeval_collector.base.errors import UserError
        from pandaeval_collector.cli._inputs import requests
        from pandaeval_collector.drill.scheduled import stored_requests

        if bool(self.files) == (self.store is not None):
            raise UserError("name files or the address of a trace store, or a data directory with --store")
        yield from requests(self.files or ()) if self.store is None else stored_requests(_existing(self.store))


run_source = in_place_of(
    "source",
    {
        "files": (Annotated[list[str] | None, typer.Argument(help=_FILES)], None),
        "store": (Annotated[Path | None, typer.Option(metavar="FOLDER", help=_STORE)], None),
    },
    RunSource,
)
"""Gives a command the options that say which runs it is about, in place of its parameter ``source``."""


def _existing(folder: Path) -> Path:
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.store.connection import FILE_NAME

    if not (folder / FILE_NAME).is_file():
        raise UserError(f"--store {folder}: there is no store in it; `pandaeval collector` makes one")
    return folder
