"""Declares options and groups of commands."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import typer
from typer.core import TyperGroup

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


class ListGroup(TyperGroup):
    """Reads ``pandaeval traces --since 2h`` as ``pandaeval traces list --since 2h``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])
