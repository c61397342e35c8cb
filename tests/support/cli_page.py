"""Generates the command reference from the commands' help.

cd tests && python -m support.cli_page    # writes docs/reference/cli.md
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from typer.main import get_command

from pandaeval_collector.base.filters import FILTERS
from support.commands import whole_app

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
_SHARED_BY = 3
"""Minimum number of commands for a shared option."""
_ALWAYS = frozenset({"--config", "--output", "--format", "--store", "--url"})
"""Shared options, listed once."""
_FIRST = re.compile(r"(.+?)(?:[;:] |\.$|\. (?=[A-Z])|, (?=such as|as |else ))")
_HEAD = """\
# Commands

This page lists all commands with their options. `pandaeval COMMAND --help` describes each option.
`cd tests && python -m support.cli_page` generates this page from the help.

These options have the same meaning in every command:

- `-c`, `--config`: Configuration file.
- `-o`, `--output`: File to write.
- `--format`: Output format, `table` or `json`.
- `--store`: Data directory to use, instead of a running collector.
- `--url`: Address of a running collector. The variable `PANDAEVAL_URL` also sets it.
"""


def reference_page() -> str:
    commands = dict(_commands(get_command(whole_app())))
    shared = _shared(commands)
    groups: dict[str, list[str]] = {}
    for path, command in commands.items():
        _, *words = path.split()
        group = words[0] if len(words) > 1 else "Single commands"
        groups.setdefault(group, []).append(_entry(path, command, shared))
    sections = [f"## {group}\n\n{''.join(entries)}" for group, entries in groups.items()]
    return "\n".join([_HEAD, f"## Shared options\n\n{_shared_list(shared)}", *sections])


def _shared_list(shared: Mapping[tuple[str, str], Any]) -> str:
    """Return the shared options, and only the names of the filters, which the API page describes."""
    names = {filter_.option.partition("/")[0] or f"--{filter_.name}" for filter_ in FILTERS}
    own = [option for (name, _), option in shared.items() if name not in names]
    filters = ", ".join(f"`{name}`" for name, _ in shared if name in names)
    return f"{_list(own)}\nThe shared filters are the [filters](api.md#filters) of the API: {filters}.\n"


def _entry(path: str, command: click.Command, shared: Mapping[tuple[str, str], Any]) -> str:
    options = _options(command)
    arguments = [option.name.upper().rstrip("_") for option in options if option.param_type_name == "argument"]
    own = [option for option in options if _is_option(option) and (option.opts[0], option.help) not in shared]
    filters = ["the shared filters"] if any(option.opts[0] == "--with-metric" for option in options) else []
    listed = ", ".join([*(f"`{_names(option)}`{_default(option)}" for option in own), *filters])
    return f"- **`{' '.join([path, *arguments])}`** {_summary(command)}{f' Options: {listed}.' if listed else ''}\n"


def _commands(command: Any, path: str = "pandaeval") -> Iterator[tuple[str, click.Command]]:
    inner: Mapping[str, click.Command] = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, below in inner.items():
        yield from _commands(below, f"{path} {name}")


def _options(command: click.Command) -> list[Any]:
    return [option for option in command.params if option.opts[0] != "--help" and not getattr(option, "hidden", False)]


def _is_option(parameter: Any) -> bool:
    """Return whether a parameter is a command-specific option."""
    return parameter.param_type_name == "option" and _ALWAYS.isdisjoint(parameter.opts)


def _shared(commands: Mapping[str, click.Command]) -> dict[tuple[str, str], Any]:
    """Return the options of several commands, by name with their usual help."""
    given = [option for command in commands.values() for option in _options(command)]
    given = [option for option in given if _is_option(option)]
    options = {(option.opts[0], option.help): option for option in given}
    uses = Counter((option.opts[0], option.help) for option in given)
    usual: dict[str, tuple[str, str]] = {}
    for key, count in uses.most_common():
        if count >= _SHARED_BY:
            usual.setdefault(key[0], key)
    return {key: options[key] for key in sorted(usual.values())}


def _list(options: Any) -> str:
    return "".join(f"- `{_names(option)}`: {_words(option)}\n" for option in options)


def _names(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if getattr(option, "is_flag", False):
        return names
    return f"{names} {option.metavar or 'VALUE'}"


def _words(option: Any) -> str:
    text = " ".join((getattr(option, "help", None) or "").split())
    first = _FIRST.match(text)
    return f"{first[1] if first else text}{_default(option)}."


def _default(option: Any) -> str:
    default = option.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return f" (default {default})" if shown else ""


def _summary(command: click.Command) -> str:
    return re.split(r"(?<=\.) ", " ".join((command.help or "").split("\n\n")[0].split()))[0]


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
