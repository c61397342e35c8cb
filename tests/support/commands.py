"""The command tree, built once per process because typer is slow."""

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
def whole_app() -> typer.Typer:
    """Return the application with every command imported."""
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
    """Share the built tree among later calls and ``CliRunner``."""
    typer.main.get_command = _shared
    typer.testing._get_command = _shared  # type: ignore[attr-defined]


def _shared(app: typer.Typer) -> Any:
    return _built(app, len(app.registered_commands), len(app.registered_groups))


@cache
def _built(app: typer.Typer, commands: int, groups: int) -> Any:
    """Return the cached tree; rebuild it after an addition."""
    return get_command(app)
