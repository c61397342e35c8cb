"""Rules for every command of ``pandaeval``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
import typer
from typer.models import OptionInfo
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.commands import whole_app

_STYLE = re.compile(r"[A-Z][A-Z_]*|[A-Z]+=[A-Z]+(,\.\.)?|A,B|0\.\.1")


def discovered(of: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the function of each command."""
    for command in of.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        yield (*path, name), command.callback
    for group in of.registered_groups:
        assert group.typer_instance is not None
        yield from discovered(group.typer_instance, (*path, group.name or ""))


COMMANDS = dict(discovered(whole_app()))
NAMED = [pytest.param(path, id=" ".join(path)) for path in COMMANDS]


def options(path: tuple[str, ...]) -> dict[str, tuple[Any, OptionInfo]]:
    """Return types and declarations of a command's options by name."""
    found: dict[str, tuple[Any, OptionInfo]] = {}
    for name, each in inspect.signature(COMMANDS[path], eval_str=True).parameters.items():
        if get_origin(each.annotation) is not Annotated:
            continue
        kind, *metadata = get_args(each.annotation)
        for info in metadata:
            if isinstance(info, OptionInfo):
                first = [info.default] if isinstance(info.default, str) else []
                declared = [*first, *(info.param_decls or ())]
                long = any(one.startswith("--") for one in declared)
                for one in [*declared, *([] if long else [f"--{name.strip('_').replace('_', '-')}"])]:
                    found[one] = (kind, info)
    return found


def test_more_than_45_commands_are_found() -> None:
    assert len(COMMANDS) > 45
    assert ("runs", "list") in COMMANDS


@pytest.mark.parametrize("path", NAMED)
def test_short_help_option_prints_the_same_as_help(path: tuple[str, ...]) -> None:
    short, long = (CliRunner().invoke(app, [*path, flag]) for flag in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0, short.output
    assert short.output == long.output
    assert "Usage:" in short.output


@pytest.mark.parametrize("path", NAMED)
def test_common_options_are_declared_alike_in_every_command(path: tuple[str, ...]) -> None:
    found = options(path)
    if "--output" in found:
        assert "-o" in found, "files are written with -o"
    assert "--out" not in found or "--output" in found
    if "--url" in found:
        assert found["--url"][1].envvar == "PANDAEVAL_URL"
    if "--store" in found:
        assert found["--store"][1].metavar == "FOLDER"
        assert Path in get_args(found["--store"][0])
    if "--config" in found:
        assert (found["--config"][1].metavar, "-c" in found) == ("FILE", True)
    if "--junit" not in found and "--format" in found:
        kinds = [*get_args(found["--format"][0]), found["--format"][0]]
        assert any("json" in get_args(kind) for kind in kinds)


@pytest.mark.parametrize("path", NAMED)
def test_metavars_follow_one_style(path: tuple[str, ...]) -> None:
    for name, (kind, info) in options(path).items():
        if info.metavar is not None:
            assert _STYLE.fullmatch(info.metavar), f"{name} {info.metavar}"
        if Path in (kind, *get_args(kind)):
            assert info.metavar in ("FILE", "FOLDER"), name


@pytest.mark.parametrize(
    "path",
    [each for each in NAMED if (COMMANDS[each.values[0]].__doc__ or "").startswith(("List ", "Show "))],  # type: ignore[index]
)
def test_list_and_show_commands_have_a_format_option(path: tuple[str, ...]) -> None:
    assert "--format" in options(path)


def test_help_offers_shell_completion() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output
