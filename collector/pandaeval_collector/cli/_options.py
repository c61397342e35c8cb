"""Common options, and options declared by a dataclass."""

from __future__ import annotations

import inspect
import typing
from dataclasses import MISSING, fields
from typing import Any

import typer


def file_argument(help_: str) -> Any:
    return typer.Argument(metavar="FILE", help=help_)


def file_option(help_: str, *names: str) -> Any:
    return typer.Option(*names, metavar="FILE", help=help_)


def config_option(help_: str) -> Any:
    return file_option(help_, "--config", "-c")


def output_option(help_: str, *others: str) -> Any:
    return file_option(help_, "--output", "-o", *others)


def declared(kind: type) -> dict[str, tuple[Any, Any]]:
    hints = typing.get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    return {each.name: (hints[each.name], empty if each.default is MISSING else each.default) for each in fields(kind)}
