"""Mutation files name existing code."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[2]
_MUTATION = _TESTS / "mutation"
_COLLECTOR = _TESTS.parent / "collector"
if str(_MUTATION) not in sys.path:
    sys.path.append(str(_MUTATION))

from areas import AREAS, Area  # noqa: E402


@pytest.mark.parametrize("area", AREAS.values(), ids=AREAS.keys())
def test_areas_name_existing_files(area: Area) -> None:
    assert [each for each in area.sources if not [*_COLLECTOR.glob(f"pandaeval_*/{each}")]] == []
    assert [each for each in area.tests if not (_TESTS / "unit" / each).exists()] == []


def test_equivalent_mutants_name_existing_functions() -> None:
    document = tomllib.loads((_MUTATION / "equivalent.toml").read_text())
    named = {each["function"] for each in document["equivalent"]}
    assert {each for each in named if each not in _functions(each)} == set()


def _functions(named: str) -> Iterator[str]:
    parts = named.split(".")
    for last in range(len(parts) - 1, 0, -1):
        for file in _COLLECTOR.glob("pandaeval_*/" + "/".join(parts[:last]) + ".py"):
            module = ".".join(parts[:last])
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{module}.{node.name}"
                elif isinstance(node, ast.ClassDef):
                    methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
                    yield from (f"{module}.{node.name}.{each.name}" for each in methods)
