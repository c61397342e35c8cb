"""Options that many commands have, and options that a dataclass declares."""

from __future__ import annotations

import inspect
import typing
from dataclasses import MISSING, fields
from typing import Any

import typer


def file_argument(help_: str) -> Any:
    """Declares an argument that names a file."""
    return typer.Argument(metavar="FILE", help=help_)


def file_option(help_: str, *names: str) -> Any:
    """Declares an option that names a file."""
    return typer.Option(*names, metavar="FILE", help=help_)


def config_option(help_: str) -> Any:
    """Declares ``--config``, for all commands alike."""
    return file_option(help_, "--config", "-c")


def output_option(help_: str, *others: str) -> Any:
    """Declares ``--output``, for all commands alike. ``others``: more names of it."""
    return file_option(help_, "--output", "-o", *others)


def declared(kind: type) -> dict[str, tuple[Any, Any]]:
    """Returns the options that a dataclass declares by its fields: annotation and default by name."""
    hints = typing.get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    return {each.name: (hints[each.name], empty if each.default is MISSING else each.default) for each in fields(kind)}
