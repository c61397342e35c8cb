"""The tree of commands: all of them at once; and built once in a process, which takes typer a tenth of a second."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from typing import Any

import typer
import typer.main
import typer.testing
from typer.main import get_command

from pandaeval_collector.cli import _app


@cache
def whole() -> typer.Typer:
    """The application with every command imported, where ``pandaeval`` imports the one that is asked for."""
    made = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    for module in _app._modules().values():
        held = vars(importlib.import_module(module))
        for name, value in held.items():
            if isinstance(value, typer.Typer):
                made.add_typer(value, name=name)
        if inspect.isfunction(command := held.get(module.rpartition(".")[2])):
            made.command()(command)
    return made


def install() -> None:
    """From now on calls of a command line in this process, and of ``CliRunner``, share what was built."""
    typer.main.get_command = _shared
    typer.testing._get_command = _shared  # type: ignore[attr-defined]


def _shared(app: typer.Typer) -> Any:
    return _built(app, len(app.registered_commands), len(app.registered_groups))


@cache
def _built(app: typer.Typer, commands: int, groups: int) -> Any:
    """Another one after something was added."""
    return get_command(app)
