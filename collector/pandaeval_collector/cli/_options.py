"""Common options, and options declared by a dataclass."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import typer

from pandaeval_collector.base.filters import in_place_of


def argument(help_: str, **given: Any) -> Any:
    return typer.Argument(help=help_, **given)


def option(help_: str, *names: str, **given: Any) -> Any:
    return typer.Option(*names, help=help_, **given)


def file_argument(help_: str) -> Any:
    return argument(help_, metavar="FILE")


def file_option(help_: str, *names: str) -> Any:
    return option(help_, *names, metavar="FILE")


def config_option(help_: str) -> Any:
    return file_option(help_, "--config", "-c")


def output_option(help_: str, *others: str) -> Any:
    return file_option(help_, "--output", "-o", *others)


def given_by(name: str, kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that replaces parameter ``name`` by an option per field of the dataclass ``kind``."""
    hints = typing.get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    options = {
        each.name: (hints[each.name], empty if each.default is MISSING else each.default) for each in fields(kind)
    }
    return in_place_of(name, options, kind)
