"""Public names are importable and listed in docs/internals/extension-api.md."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pandaeval_collector
import pandaeval_collector.stats
import pandaeval_lab
import pandaeval_otel

_ROOT = Path(__file__).parents[3]
_TEXT = (_ROOT / "docs/internals/extension-api.md").read_text()
_LAZY = [pandaeval_otel, pandaeval_collector, pandaeval_lab]


def _declared(package: ModuleType) -> dict[str, str]:
    """Return the declared names and their modules."""
    return {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(ast.parse(inspect.getsource(package)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pandaeval_")
        for alias in node.names
    }


@pytest.mark.parametrize("package", _LAZY, ids=lambda package: package.__name__)
def test_public_names_are_importable_and_declared_for_type_checkers(package: ModuleType) -> None:
    listed = {name: module for module, names in package._NAMES.items() for name in names.split()}
    declared = {name: module for name, module in _declared(package).items() if name != "lazy_names"}
    assert declared == {name: f"{package.__name__}.{module}" for name, module in listed.items()}
    assert sorted(package.__all__) == sorted(listed)
    assert set(package.__all__) <= set(dir(package))
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []


@pytest.mark.parametrize("package", _LAZY, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no attribute 'NoSuchName'"):
        _ = package.NoSuchName


@pytest.mark.parametrize("package", [*_LAZY, pandaeval_collector.stats], ids=lambda package: package.__name__)
def test_the_page_lists_each_public_name(package: ModuleType) -> None:
    listed = set(re.findall(r"`(\w+)`", _TEXT))
    assert [name for name in package.__all__ if name not in listed] == []


def test_importing_the_packages_loads_no_heavy_modules() -> None:
    code = "import sys, pandaeval_otel, pandaeval_collector, pandaeval_lab; print(*sys.modules)"
    path = {"PYTHONPATH": f"{_ROOT}:{_ROOT / 'collector'}"}
    loaded = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    assert not {"opentelemetry", "grpc", "numpy", "pydantic", "google.protobuf"} & set(loaded.stdout.split())
