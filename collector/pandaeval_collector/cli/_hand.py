"""What all commands have alike, whoever wrote them: short forms, variables and words for values of options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

_SHORT = {"--output": "-o", "--config": "-c"}
_NAMED = inspect.Parameter.KEYWORD_ONLY
_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""


def alike(app: typer.Typer) -> None:
    """Gives options of the same name the same short form and metavar in all commands of the application."""
    for command in commands(app):
        own = inspect.signature(command, eval_str=True)
        made = own.replace(parameters=[_alike(each) for each in own.parameters.values()])
        command.__signature__ = made  # type: ignore[attr-defined]
        command.__annotations__ = {}


def commands(app: typer.Typer) -> Iterator[Callable[..., Any]]:
    """Yields the functions behind all commands."""
    for command in app.registered_commands:
        if command.callback is not None:
            yield command.callback
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance)


def _alike(parameter: inspect.Parameter) -> inspect.Parameter:
    if typing.get_origin(parameter.annotation) is not Annotated:
        return parameter
    kind, *said = typing.get_args(parameter.annotation)
    for each in said:
        if isinstance(each, ParameterInfo):
            _name_value(each, kind, parameter.name)
        if isinstance(each, OptionInfo):
            _shorten(each, parameter.name)
    return parameter.replace(annotation=_ANNOTATED[(kind, *said)])


def _shorten(option: OptionInfo, name: str) -> None:
    first = (option.default,) if isinstance(option.default, str) else ()  # where Typer keeps what Annotated declares
    declared = (*first, *(option.param_decls or ()))
    names = declared or (f"--{name.strip('_').replace('_', '-')}",)
    short = next((_SHORT[each] for each in names if each in _SHORT), None)
    if short is not None and short not in names:
        option.param_decls = (*names[len(first) :], short)


def _name_value(info: ParameterInfo, kind: Any, name: str) -> None:
    if info.metavar is not None:
        return
    if kind is Path or Path in typing.get_args(kind):
        info.metavar = "FILE"
    elif isinstance(info, ArgumentInfo) and name.endswith("_id"):
        info.metavar = "ID"


def declared(kind: type) -> dict[str, tuple[Any, Any]]:
    """Returns the options that a dataclass declares by its fields: annotation and default by name."""
    hints = typing.get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    return {each.name: (hints[each.name], empty if each.default is MISSING else each.default) for each in fields(kind)}
