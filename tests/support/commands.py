"""The tree of commands, built once in a process. typer builds one for each call, which takes a tenth of a second."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer
import typer.main
import typer.testing
from typer.main import get_command


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
