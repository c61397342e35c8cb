"""The store's file for commands that look into it, or change a little, beside a collector that may run on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pandaeval_collector.store.connection import Durability


StoreFolder = Annotated[
    Path | None, typer.Option("--store", metavar="FOLDER", help="The data directory; else as the configuration says.")
]


@contextmanager
def opened_store(config: Path | None, folder: Path | None = None) -> Iterator[sqlite3.Connection]:
    """The store in a folder, else that which the configuration names. Raises ``UserError`` where there is none, or an
    older one."""
    from pandaeval_collector.cli._config import resolve_config

    settings = resolve_config(config, given(folder)).config.store
    with opened_folder(Path(settings.path), settings.durability) as connection:
        yield connection


def folder_of(config: Path | None, folder: Path | None) -> Path:
    """The data directory: the one that is given, else that of the configuration."""
    from pandaeval_collector.cli._config import resolve_config

    return Path(resolve_config(config, given(folder)).config.store.path)


def given(folder: Path | None) -> dict[str, str]:
    """The option as it stands in for the configuration."""
    return {} if folder is None else {"store.path": str(folder)}


@contextmanager
def opened_folder(
    folder: Path, durability: Durability = "full", read_only: bool = False
) -> Iterator[sqlite3.Connection]:
    """Opens the store of a data directory."""
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.store.connection import FILE_NAME, connect

    file = folder / FILE_NAME
    if not file.is_file():
        raise UserError(
            f"there is no store in {folder} (store.path or PANDAEVAL_DATA); `pandaeval collector` makes one"
        )
    connection = connect(file, durability, read_only)
    try:
        yield connection
    except sqlite3.OperationalError as error:
        cure = "try again in a moment" if "locked" in str(error) else "was it written by an older version?"
        raise UserError(f"{file}: {error} ({cure})") from error
    finally:
        connection.close()
