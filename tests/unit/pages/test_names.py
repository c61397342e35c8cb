"""Documented commands, options, keys, operations, metrics and paths exist."""

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
from support.api_page import document
from support.commands import whole_app
from support.own_metrics import ATTRIBUTES, instruments, prometheus_name
from support.upgrade_page import named_now

ROOT = Path(__file__).parents[3]
_PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "internals" not in page.parts),
]
_KEYS = {".".join(path) for path in keys()}
_LEAVES = {".".join(path) for path, key in keys().items() if not key.section}
_SECTIONS = {path[0] for path in keys()}
_FOREIGN_OPTIONS = {"--build-arg", "--enable-feature", "--max-model-len", "--require-hashes"}
_FOREIGN_OPTIONS |= {"--dist", "--junitxml"}  # of pytest
_SOURCES = "".join(
    path.read_text(encoding="utf-8", errors="replace")
    for folder in ("pandaeval_otel", "collector/pandaeval_collector", "collector/pandaeval_lab")
    for path in sorted((ROOT / folder).rglob("*.py"))
)
_SERIES = {prometheus_name(each) + part for each in instruments() for part in ("", "_bucket", "_sum", "_count")}
_LABELS = {word.replace(".", "_") for text in ATTRIBUTES.values() for word in re.findall(r"`([\w.]+)`", text)}
_OPERATIONS = [re.sub(r"\{\w+\}", "[^/]+", path) for path in ("/openapi.json", *document()["paths"])]
_OTHER = {"pandaeval_otel", "pandaeval_collector", "pandaeval_lab", "pandaeval_url"}
"""Packages, and the external label of alerts."""
_FOREIGN = {"judge.txt", "response.id", "session.id", "session.timeout.ms"}
"""Foreign names that begin like a configuration section."""
_CALL = re.compile(r"(?:^ *|`|&& |\| |PANDAEVAL_\S+ )pandaeval((?: [a-z][a-z-]*){1,2})([^`\n|#]*)", re.MULTILINE)


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    yield path, {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


_COMMANDS = dict(_commands(get_command(whole_app())))


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_commands_and_options_exist(page: Path) -> None:
    text = named_now(page).replace("\\\n", " ")
    for words, rest in _CALL.findall(text):
        first, *more = words.split()
        path = (first, *more) if (first, *more) in _COMMANDS else (first,)
        assert path in _COMMANDS, f"pandaeval{words}"
        named = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", rest))
        assert named <= _COMMANDS[path] | {"--help"}, f"pandaeval {' '.join(path)}: {named - _COMMANDS[path]}"


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_configuration_keys_exist(page: Path) -> None:
    text = named_now(page)
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?::[^`]*)?`", text))
    wrong = {name for name in named if name.split(".")[0] in _SECTIONS and not _is_key(name)}
    assert wrong - _FOREIGN - set(registry((GRADERS,))) == set()


def _is_key(name: str) -> bool:
    """Return whether ``name`` is a key, section or map entry."""
    return name in _KEYS or name.rpartition(".")[0] in _LEAVES


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_variables_exist(page: Path) -> None:
    known = {f"PANDAEVAL_{key.replace('.', '__').upper()}" for key in _KEYS} | set(VARIABLES)
    known |= {"PANDAEVAL_DATA", "PANDAEVAL_URL", "PANDAEVAL_TOKEN", "PANDAEVAL_INCOMING_TOKEN", "PANDAEVAL_MOCKS"}
    for variable in re.findall(r"\bPANDAEVAL_[A-Z_]*[A-Z]\b", named_now(page)):
        assert any(variable == name or variable.startswith(f"{name}__") for name in known), variable


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_paths_of_the_repository_exist(page: Path) -> None:
    text = named_now(page)
    for path in re.findall(r"(?<![\w/.-])((?:deploy|collector|docs|tests)/[\w/.-]*\w)", text):
        assert list(ROOT.glob(f"{path}*")), path


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_options_without_a_command_exist(page: Path) -> None:
    named = set(re.findall(r"`(--[a-z][a-z-]*)", named_now(page)))
    assert named <= set().union(*_COMMANDS.values(), _FOREIGN_OPTIONS)


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_operations_of_the_api_exist(page: Path) -> None:
    text = named_now(page)
    for path in re.findall(r"/api/v1(/[\w/{}.-]*\w)", text):
        assert any(re.fullmatch(each, path) for each in _OPERATIONS), path


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_metrics_and_labels_of_prometheus_exist(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.-])(pandaeval_[a-z_]+)\b(?![/.-])", named_now(page)))
    assert {name for name in named if name.removeprefix("pandaeval_") not in _LABELS} <= _SERIES | _OTHER


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_attributes_and_entry_points_exist(page: Path) -> None:
    for name in set(re.findall(r"`(pandaeval(?:\.[a-z_]+)+)\b", named_now(page))):
        prefix = name.rpartition(".")[0]
        assert name in _SOURCES or f"{prefix}.{{" in _SOURCES, name
