"""The application: command discovery, common options and exit codes.

Commands come from this folder and entry points ``pandaeval.commands``. A module holds a function of its name, or groups
as ``name = typer.Typer(help="…")``. Only the requested module is imported.
"""

from __future__ import annotations

import ast
import errno
import importlib
import os
import pkgutil
import re
import sys
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.removed import removed
from pandaeval_collector.cli._options import option
from pandaeval_collector.cli._terminal import harmless_arguments
from pandaeval_otel.base.plugins import told

_BROKEN_PIPE = 128 + 13  # as if SIGPIPE had ended the command
_INTERRUPTED = 128 + 2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_HERE = __name__.rpartition(".")[0]
_GROUP = "pandaeval.commands"
_SECTIONS = {
    "Start": "demo init evaluate collector doctor",
    "Find failures": "failures sessions traces compare report export mcp",
    "Measure and test": "cases labels judge questions runs metrics",
    "Operate": "config store delete",
}
_FURTHER = "Further commands"
_NO_SUCH = re.compile(r"No such (?:command|option):? '?([\w-]+)")
_UsageError: Any = typer.BadParameter.__mro__[1]
"""Click's base class of usage errors, whether Typer bundles Click or imports it."""


class Commands(TyperGroup):
    """All commands; only the requested command is imported. Converts user errors to messages and exit codes."""

    def list_commands(self, ctx: Any) -> list[str]:
        self.commands = {name: outline for name, (_, outline) in _overview().items()}
        return super().list_commands(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section, in plain text."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            rows.setdefault(command.rich_help_panel, []).append((name, command.get_short_help_str(70)))
        for section, listed in rows.items():
            with formatter.section(section):
                formatter.write_dl(listed)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command in ``args``. Raises ``UserError`` for unusable third-party commands."""
        name = args[0]
        module = _modules().get(name) or _overview().get(name, ("", None))[0]
        try:
            command = _loaded(module, self.rich_markup_mode).get(name) if module else None
        except Exception as error:
            if module.startswith(_HERE):
                raise
            raise UserError(f"{module} cannot be used: {told(error)}; update or remove its package") from error
        if command is None:  # the error lists similar names
            self.list_commands(ctx)
            return super().resolve_command(ctx, args)
        return name, command, args[1:]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            raise _misused(error) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exits with 2 for a :class:`UserError`."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except _UsageError as error:
            raise _misused(error) from error
        except UserError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(_INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader, such as `head`, has closed the pipe. Without this, the interpreter reports an error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from error
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            typer.echo(f"cannot write the output: {error.strerror}; free space and try again", err=True)
            raise typer.Exit(2) from error
        return result


@cache
def _modules() -> dict[str, str]:
    others = (module for point in entry_points(group=_GROUP) for module in _public(point.module))
    return {module.rpartition(".")[2]: module for module in (*others, *_public(_HERE))}


def _public(module: str) -> list[str]:
    try:
        spec = find_spec(module)
    except ImportError as error:
        return [] if error.name == module.partition(".")[0] else [module]  # a call of the command reports it
    if spec is None or spec.submodule_search_locations is None:
        return [module]
    infos = pkgutil.iter_modules(spec.submodule_search_locations)
    return [f"{module}.{info.name}" for info in infos if not info.name.startswith("_")]


@cache
def _loaded(module: str, markup: Any) -> dict[str, Any]:
    made = typer.Typer(rich_markup_mode=markup)
    for name, value in vars(importlib.import_module(module)).items():
        if isinstance(value, typer.Typer):
            made.add_typer(value, name=name)
        elif name == module.rpartition(".")[2]:
            made.command(name)(value)
    return {**get_group(made).commands}


@cache
def _overview() -> dict[str, tuple[str, TyperCommand]]:
    found = [(module, outline) for module in _modules().values() for outline in _outlines(module)]
    sections = {name: section for section, names in _SECTIONS.items() for name in names.split()}
    order = [*sections]
    found.sort(key=lambda item: order.index(str(item[1].name)) if item[1].name in sections else len(order))
    for _, outline in found:
        outline.rich_help_panel = sections.get(str(outline.name), _FURTHER)
    return {str(outline.name): (module, outline) for module, outline in found}


def _outlines(module: str) -> list[TyperCommand]:
    found: list[TyperCommand] = []
    name = module.rpartition(".")[2]
    try:
        spec = find_spec(module)
        body = ast.parse(Path(str(spec and spec.origin)).read_bytes()).body
    except Exception:  # noqa: BLE001 - a package's error; a call of the command reports it
        body = []
    for node in body:
        match node:
            case ast.FunctionDef() if node.name == name:
                found.append(TyperCommand(name, help=ast.get_docstring(node)))
            case ast.Assign([ast.Name(group)], ast.Call(ast.Attribute(attr="Typer"), keywords=given)):
                help_ = next((ast.literal_eval(each.value) for each in given if each.arg == "help"), None)
                found.append(TyperCommand(group, help=help_))
    return found or [TyperCommand(name)]


def _misused(error: Any) -> Exception:
    if "NoArgs" in type(error).__name__:
        return error  # type: ignore[no-any-return]
    command = "pandaeval" if error.ctx is None else error.ctx.command_path
    if replacement := _replacement(command, error.format_message()):
        typer.echo(f"{command}: {replacement}", err=True)
        return typer.Exit(2)
    what = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    typer.echo(f"{command}: {what}{'' if what.endswith('?') else ';'} see `{command} -h`", err=True)
    return typer.Exit(2)


def _replacement(command: str, message: str) -> str | None:
    """Return a sentence about a command or option of an earlier version."""
    named = _NO_SUCH.match(message)
    if named is None:
        return None
    name = named[1]
    full = " ".join((*command.split()[1:], name))
    sentence = removed("commands").get(full) or (name.startswith("-") and removed("commands").get(name))
    return f"{name} was removed. {sentence}" if sentence else None


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from pandaeval_collector.base.runtime.version import release

    typer.echo(release())
    raise typer.Exit


def _build() -> typer.Typer:
    built = typer.Typer(
        cls=Commands,
        help="Check from OpenTelemetry traces whether your AI agents did their job.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,  # its tracebacks show local variables, secrets among them
        rich_markup_mode="rich" if sys.stdout.isatty() and harmless_arguments() else None,
    )
    built.callback()(_root)
    return built


def _root(
    version: Annotated[
        bool, option("Print the version and exit.", "--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Holds the common options."""


app = _build()
