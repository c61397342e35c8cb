"""Removed keys, commands and options of version 0.1.0 are refused with their replacements."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pandaeval_collector.base.removed import removed
from pandaeval_collector.cli import app
from pandaeval_collector.config import ConfigError, load
from pandaeval_collector.config._tree import keys
from support.commands import whole_app

_OLD = Path(__file__).parents[2] / "golden" / "version_0_1_0"
_KEYS = (_OLD / "keys.txt").read_text().split()
_COMMANDS = (_OLD / "commands.txt").read_text().splitlines()
_NOW = {".".join(path) for path in keys()}
_VALUES: dict[str, Any] = {"judge.only.attributes": {"tenant": ["gold"]}, "judge.only.agents": ["planner"]}


def _names(command: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Return commands, and options with their command."""
    options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    found = {" ".join(path)} | {" ".join((*path, option)) for option in options if option.startswith("-")}
    for name, inner in getattr(command, "commands", {}).items():
        found |= _names(inner, (*path, name))
    return found


def _below_removed(name: str) -> bool:
    """Return whether the name belongs to a removed command, which is refused first."""
    words = name.split()
    return any(" ".join(words[:length]) in removed("commands") for length in range(1, len(words)))


_NAMES = _names(get_command(whole_app()))
_GONE_KEYS = [key for key in _KEYS if key not in _NOW]
_GONE = [name for name in _COMMANDS if name not in _NAMES and "<" not in name and not _below_removed(name)]


def _sentence(key: str) -> str:
    """Return the sentence about the key or its section."""
    parts = key.split(".")
    sections = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((removed("keys")[name] for name in sections if name in removed("keys")), f"add {key} to removed.toml")


@pytest.mark.parametrize("key", _GONE_KEYS)
@pytest.mark.parametrize("source", ["file", "variable"])
def test_a_removed_key_is_refused_with_its_replacement(key: str, source: str, tmp_path: Path) -> None:
    path, environ = tmp_path / "config.yaml", {}
    value: Any = _VALUES.get(key, ["a"])
    if source == "variable":
        environ[f"PANDAEVAL_{key.replace('.', '__').upper()}"] = json.dumps(value)
    for name in reversed(key.split(".")):
        value = {name: value}
    path.write_text(json.dumps(value if source == "file" else {}))
    with pytest.raises(ConfigError) as raised:
        load(path, environ)
    assert [str(problem).partition("was removed. ")[2] for problem in raised.value.problems] == [_sentence(key)]


@pytest.mark.parametrize("name", sorted({*_GONE, *(name for name in removed("commands") if "--" not in name)}))
def test_a_removed_command_or_option_is_refused_with_its_replacement(name: str) -> None:
    result = CliRunner().invoke(app, name.split())
    assert result.exit_code == 2
    sentence = removed("commands").get(name) or removed("commands").get(name.split()[-1], "add it to removed.toml")
    assert result.output.endswith(f"{name.split()[-1]} was removed. {sentence}\n")


def test_each_entry_existed_in_version_0_1_0_and_is_gone_now() -> None:
    sections = {".".join(key.split(".")[:length]) for key in _KEYS for length in range(1, 5)}
    assert removed("keys").keys() <= sections - _NOW
    known = {*_COMMANDS, *(name.split()[-1] for name in _COMMANDS), *(name.split()[0] for name in _COMMANDS)}
    assert removed("commands").keys() <= known - _NAMES


@pytest.mark.parametrize("kind", ["keys", "commands"])
def test_names_in_replacement_sentences_exist(kind: Any) -> None:
    for sentence in removed(kind).values():
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence.startswith("`")
        for named in re.findall(r"`([^`]+)`", sentence):
            words = named.removeprefix("pandaeval ").split()
            if named.startswith("pandaeval "):
                assert " ".join(words) in _NAMES, named
            elif named.startswith("--"):
                assert any(name.endswith(f" {words[0]}") for name in _NAMES), named
            elif re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", named) and not named.startswith(("pandaeval.", "trial.")):
                assert named in _NOW, named


def test_judge_parameters_of_a_single_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("judge: {parameters: {openai/gpt-4o: {max_tokens: 100}}}")
    with pytest.raises(
        ConfigError, match="has openai/gpt-4o, which is not an argument; parameters apply to all models"
    ):
        load(path, {})


def test_entries_of_the_same_section_are_adjacent() -> None:
    sections = [name.split(".")[0] for name in removed("keys")]
    assert all(sections.index(one) <= sections.index(other) for one, other in pairwise(sections))
