"""docs/coverage.md names only tests that exist, and every metric that there is."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from pandaeval_collector.scoring.metric.registry import registry

_ROOT = Path(__file__).parents[3]
_TEXT = (_ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
_NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", _TEXT)))


@functools.cache
def _names(path: Path) -> frozenset[str]:
    """What can be collected of a file, as pytest writes it."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"::{node.name}::{each.name}" for each in node.body if isinstance(each, _FUNCTIONS)}
        elif isinstance(node, _FUNCTIONS):
            found.add(f"::{node.name}")
    return frozenset(name for name in found if "::test_" in name)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize(("path", "name"), _NAMED, ids=lambda part: str(part).rpartition("/")[2])
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    known = _names(_ROOT / path)
    assert name in known if name else known


def test_enough_is_named() -> None:
    assert len(_NAMED) > 80


def test_every_metric_is_listed() -> None:
    built = _TEXT.partition("## Not built")[0]
    rows = [line for line in built.splitlines() if line.startswith("| `")]
    for metric in registry().values():
        assert any(row.startswith(f"| `{metric.level}.{metric.name}` |") for row in rows), metric.name


def test_no_metric_is_listed_that_is_not_there() -> None:
    listed = set(re.findall(r"^\| `((?:trace|session|turn|trial|task)\.\w+)` \|", _TEXT, re.MULTILINE))
    assert listed == {f"{metric.level}.{metric.name}" for metric in registry().values()}


def test_what_is_not_built_is_not_there() -> None:
    """So that the list shrinks when something is built."""
    not_built = _TEXT.partition("## Not built")[2]
    assert not any(f"`{metric.name}`" in not_built for metric in registry().values())


@pytest.mark.parametrize("script", sorted(set(re.findall(r"`python (tests/[\w/]+\.py)`", _TEXT))))
def test_scripts_that_are_named_exist(script: str) -> None:
    assert (_ROOT / script).exists()
