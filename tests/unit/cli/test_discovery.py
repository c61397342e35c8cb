"""Discovery of our commands and third-party commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pandaeval_collector.cli import _app
from support.commands import whole_app

_MODULE = '''
import typer

def greet(name: str) -> None:
    """Say hello."""
    typer.echo(f"hello {name}")
'''


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a working, a broken and a clashing command."""
    (tmp_path / "greet.py").write_text(_MODULE)
    (tmp_path / "broken.py").write_text("raise RuntimeError('no such luck')\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "config.py").write_text("raise RuntimeError('never read')\n")
    points = [EntryPoint(name, name, "pandaeval.commands") for name in ("greet", "broken", "gone", "config")]
    monkeypatch.setattr(_app, "entry_points", lambda group: points)
    caches = (_app._modules, _app._overview)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(_app._build(), arguments)
    return result.exit_code, result.output


def test_the_overview_shows_every_command_and_its_help() -> None:
    shown = get_command(_app._build())
    assert isinstance(shown, _app.Commands)
    listed = {name: shown.commands[name].help for name in shown.list_commands(None)}
    assert listed == {name: each.help for name, each in get_command(whole_app()).commands.items()}  # type: ignore[attr-defined]


@pytest.mark.usefixtures("others")
def test_a_command_of_another_package_is_listed_without_import_and_runs() -> None:
    assert "Say hello." in _run("--help")[1]
    assert "greet" not in sys.modules, "the help was read without an import"
    assert _run("greet", "you") == (0, "hello you\n")


@pytest.mark.usefixtures("others")
def test_a_broken_command_of_another_package_exits_with_code_2() -> None:
    code, told = _run("broken")
    assert code == 2
    assert told.startswith("broken cannot be used: RuntimeError: no such luck")
    assert _run("gone")[0] == 2
    assert _run("config", "check")[0] == 0
