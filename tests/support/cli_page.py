"""The reference page of the commands, made of their help so that it cannot fall behind.

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

from support.commands import whole

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
_SHARED_BY = 3
"""Options that so many commands share are listed once."""
_FIRST = re.compile(r"(.+?)(?:[;:] |\.$|\. (?=[A-Z])|, (?=such as|as |else ))")
_HEAD = """\
# Commands

`pandaeval COMMAND --help` prints the full text of each option. This page is generated from that help by
`cd tests && python -m support.cli_page`.
"""


def reference_page() -> str:
    commands = dict(_commands(get_command(whole())))
    shared = _shared(commands)
    parts = [_HEAD, "## Shared options\n", _list(shared.values())]
    for path, command in commands.items():
        own = [option for option in _options(command) if (option.opts[0], option.help) not in shared]
        parts += [f"## {path}\n", f"{_summary(command)}\n", *([_list(own)] if own else [])]
    return "\n".join(parts)


def _commands(command: Any, path: str = "pandaeval") -> Iterator[tuple[str, click.Command]]:
    """Return every command that has no commands below it, by its words."""
    inner: Mapping[str, click.Command] = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, below in inner.items():
        yield from _commands(below, f"{path} {name}")


def _options(command: click.Command) -> list[Any]:
    return [option for option in command.params if option.opts[0] != "--help" and not getattr(option, "hidden", False)]


def _shared(commands: Mapping[str, click.Command]) -> dict[tuple[str, str], Any]:
    """Return the options that several commands have, by name and help. A name is listed once, with its usual help."""
    options = {(option.opts[0], option.help): option for command in commands.values() for option in _options(command)}
    uses = Counter((option.opts[0], option.help) for command in commands.values() for option in _options(command))
    usual: dict[str, tuple[str, str]] = {}
    for key, count in uses.most_common():
        if count >= _SHARED_BY:
            usual.setdefault(key[0], key)
    return {key: options[key] for key in sorted(usual.values())}


def _list(options: Any) -> str:
    return "".join(f"- `{_names(option)}`: {_words(option)}\n" for option in options)


def _names(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len)) if option.param_type_name == "option" else option.name.upper()
    if getattr(option, "is_flag", False) or option.param_type_name == "argument":
        return names
    return f"{names} {option.metavar or 'VALUE'}"


def _words(option: Any) -> str:
    """Return the first clause of the help; the rest is in the terminal."""
    text = " ".join((getattr(option, "help", None) or "").split())
    first = _FIRST.match(text)
    text = f"{first[1] if first else text}."
    default = option.default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        text += f" Default: `{default}`"
    return text


def _summary(command: click.Command) -> str:
    return re.split(r"(?<=\.) ", " ".join((command.help or "").split("\n\n")[0].split()))[0]


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
