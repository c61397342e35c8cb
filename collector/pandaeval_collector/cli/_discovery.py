"""Finds commands: a file of this folder is one, and so is a module that a package names in ``pandaeval.commands``.

Only the module of the command that is asked for is imported, so that a start is as long as that takes. What the
overview says of the others is read from their text.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
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
        module = _ours().get(name) or _overview().get(name, ("", None))[0]
        try:
            command = _loaded(module, self.rich_markup_mode).get(name) if module else None
        except Exception as error:
            point = _installed().get(name)
            if point is None:
                raise
            package = point.dist.name if point.dist is not None else point.module
            raise UserError(
                f"{name} of {package} cannot be used: {told(error)}; update or remove the package"
            ) from error
        if command is None:  # which is said, with the names that are close
            self.list_commands(ctx)
            return super().resolve_command(ctx, args)
        return name, command, args[1:]


@cache
def _ours() -> dict[str, str]:
    """Returns our own modules by the names of their files."""
    found = (info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {name: f"{_HERE}.{name}" for name in found if not name.startswith("_")}


@cache
def _installed() -> dict[str, EntryPoint]:
    """Returns the entry points of commands in other packages by name, without those that would replace one of ours."""
    return {point.name: point for point in entry_points(group=_GROUP) if point.name not in _ours()}


@cache
def _loaded(module: str, markup: Any) -> dict[str, Any]:
    """Imports a module, and returns the commands that it adds, by name."""
    made = typer.Typer(rich_markup_mode=markup)
    importlib.import_module(module).register(made)
    alike(made)
    return {**get_group(made).commands}


@cache
def _overview() -> dict[str, tuple[str, TyperCommand]]:
    """Returns module and outline of each command by its name, groups last."""
    modules = {**_ours(), **{name: point.module for name, point in _installed().items()}}
    found = [(module, *outline) for name, module in modules.items() for outline in _outlines(name, module)]
    found.sort(key=lambda item: item[2])
    return {str(outline.name): (module, outline) for module, outline, _ in found}


def _outlines(name: str, module: str) -> list[tuple[TyperCommand, bool]]:
    """Returns name and help of what the function ``register(app)`` of a module adds, and whether it is a group, from
    the module's text. Of a module that cannot be read, or adds it in other words than ours, only the given name."""
    found: list[tuple[TyperCommand, bool]] = []
    try:
        spec = find_spec(module)
        body = ast.parse(Path(str(spec and spec.origin)).read_bytes()).body
    except Exception:  # noqa: BLE001 - of another package; whoever asks for the command hears of it
        body = []
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    groups: dict[str, str] = {}
    for node in functions["register"].body if "register" in functions else ():
        match ast.unparse(node).partition("("), node:
            case _, ast.Assign(targets=[ast.Name(of)], value=ast.Call(keywords=given)):
                groups[of] = next((ast.literal_eval(each.value) for each in given if each.arg == "help"), "")
            case ("app.command", *_), ast.Expr(
                ast.Call(ast.Call(args=[ast.Constant(str(called))]), [ast.Name(of)])
            ) if of in functions:
                found.append((TyperCommand(called, help=ast.get_docstring(functions[of])), False))
            case ("app.add_typer", *_), ast.Expr(
                ast.Call(args=[ast.Name(of)], keywords=[ast.keyword("name", ast.Constant(str(called)))])
            ):
                found.append((TyperCommand(called, help=groups.get(of)), True))
    return found or [(TyperCommand(name), False)]
