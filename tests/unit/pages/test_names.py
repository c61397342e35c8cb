"""Commands, options, configuration keys, variables and paths that the documentation names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pandaeval_collector.config._tree import keys
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_otel.processor.settings import VARIABLES
from support.commands import whole

ROOT = Path(__file__).parents[3]
_PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "internals" not in page.parts),
]
_KEYS = {".".join(path) for path in keys()}
_LEAVES = {".".join(path) for path, key in keys().items() if not key.section}
_SECTIONS = {path[0] for path in keys()}
_FOREIGN = {"response.id", "session.id", "session.timeout.ms"}
"""Names of OpenTelemetry and Kafka that begin with the name of a section."""
_CALL = re.compile(r"(?:^ *|`|&& |\| |PANDAEVAL_\S+ )pandaeval((?: [a-z][a-z-]*){1,2})([^`\n|#]*)", re.MULTILINE)


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    yield path, {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


_COMMANDS = dict(_commands(get_command(whole())))


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for words, rest in _CALL.findall(text):
        first, *more = words.split()
        path = (first, *more) if (first, *more) in _COMMANDS else (first,)
        assert path in _COMMANDS, f"pandaeval{words}"
        named = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", rest))
        assert named <= _COMMANDS[path] | {"--help"}, f"pandaeval {' '.join(path)}: {named - _COMMANDS[path]}"


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_configuration_keys_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?::[^`]*)?`", text))
    wrong = {name for name in named if name.split(".")[0] in _SECTIONS and not _is_key(name)}
    assert wrong - _FOREIGN - set(registry((GRADERS,))) == set()


def _is_key(name: str) -> bool:
    """Whether it is a key, a section, or an entry of a map."""
    return name in _KEYS or name.rpartition(".")[0] in _LEAVES


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_variables_exist(page: Path) -> None:
    known = {f"PANDAEVAL_{key.replace('.', '__').upper()}" for key in _KEYS} | set(VARIABLES)
    known |= {"PANDAEVAL_DATA", "PANDAEVAL_URL", "PANDAEVAL_TOKEN", "PANDAEVAL_INCOMING_TOKEN", "PANDAEVAL_MOCKS"}
    for variable in re.findall(r"\bPANDAEVAL_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")):
        assert any(variable == name or variable.startswith(f"{name}__") for name in known), variable


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_paths_of_the_repository_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"(?<![\w/.-])((?:deploy|collector|docs|tests)/[\w/.-]*\w)", text):
        assert list(ROOT.glob(f"{path}*")), path
