"""Finds commands: a file of this folder holds one, and so does a module that a package names in ``pandaeval.commands``,
or each public module of the package that it names there: a function of the module's name, or groups, each as
``name = typer.Typer(help="…")``.

Only the module of the command that is asked for is imported, so that a start is as long as that takes. What the
overview says of the others is read from their text.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._hand import alike
from pandaeval_otel.base.plugins import told

_HERE = __name__.rpartition(".")[0]
_GROUP = "pandaeval.commands"


class LazyGroup(TyperGroup):
    """All commands. Those in ``commands`` only say what the overview shows of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands, groups last."""
        self.commands = {name: outline for name, (_, outline) in _overview().items()}
        return super().list_commands(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Imports the command that ``args`` begin with. Raises ``UserError`` for one of another package that cannot be
        used."""
        name = args[0]
        module = _modules().get(name) or _overview().get(name, ("", None))[0]
        try:
            command = _loaded(module, self.rich_markup_mode).get(name) if module else None
        except Exception as error:
            if module.startswith(_HERE):
                raise
            raise UserError(f"{module} cannot be used: {told(error)}; update or remove its package") from error
        if command is None:  # which is said, with the names that are close
            self.list_commands(ctx)
            return super().resolve_command(ctx, args)
        return name, command, args[1:]


@cache
def _modules() -> dict[str, str]:
    """Returns the modules that hold commands by their own names; none of another package replaces one of ours."""
    others = (module for point in entry_points(group=_GROUP) for module in _public(point.module))
    return {module.rpartition(".")[2]: module for module in (*others, *_public(_HERE))}


def _public(module: str) -> list[str]:
    """Returns the public modules of a package, or a module that is none; nothing of a package that was left out, as
    images may do with the lab."""
    try:
        spec = find_spec(module)
    except ImportError as error:
        return [] if error.name == module.partition(".")[0] else [module]  # whoever asks for the command hears of it
    if spec is None or spec.submodule_search_locations is None:
        return [module]
    infos = pkgutil.iter_modules(spec.submodule_search_locations)
    return [f"{module}.{info.name}" for info in infos if not info.name.startswith("_")]


@cache
def _loaded(module: str, markup: Any) -> dict[str, Any]:
    """Imports a module, and returns its commands by name."""
    made = typer.Typer(rich_markup_mode=markup)
    for name, value in vars(importlib.import_module(module)).items():
        if isinstance(value, typer.Typer):
            made.add_typer(value, name=name)
        elif name == module.rpartition(".")[2]:
            made.command(name)(value)
    alike(made)
    return {**get_group(made).commands}


@cache
def _overview() -> dict[str, tuple[str, TyperCommand]]:
    """Returns module and outline of each command by its name, groups last."""
    found = [(module, *outline) for module in _modules().values() for outline in _outlines(module)]
    found.sort(key=lambda item: item[2])
    return {str(outline.name): (module, outline) for module, outline, _ in found}


def _outlines(module: str) -> list[tuple[TyperCommand, bool]]:
    """Returns name and help of each command of a module, and whether it is a group, from the module's text. Of a module
    that cannot be read, only the name."""
    found: list[tuple[TyperCommand, bool]] = []
    name = module.rpartition(".")[2]
    try:
        spec = find_spec(module)
        body = ast.parse(Path(str(spec and spec.origin)).read_bytes()).body
    except Exception:  # noqa: BLE001 - of another package; whoever asks for the command hears of it
        body = []
    for node in body:
        match node:
            case ast.FunctionDef() if node.name == name:
                found.append((TyperCommand(name, help=ast.get_docstring(node)), False))
            case ast.Assign([ast.Name(group)], ast.Call(ast.Attribute(attr="Typer"), keywords=given)):
                help_ = next((ast.literal_eval(each.value) for each in given if each.arg == "help"), None)
                found.append((TyperCommand(group, help=help_), True))
    return found or [(TyperCommand(name), False)]
