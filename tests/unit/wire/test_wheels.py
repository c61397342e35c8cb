"""Which wheels are made, and of which modules: what the build would only find out after minutes."""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

_ROOT = Path(__file__).parents[3]
_PYPROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())
_HOOK = _PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
_WHEELS = _PYPROJECT["tool"]["cibuildwheel"]
Choose = Callable[[Path, list[str], list[str]], list[str]]


@pytest.fixture(scope="module")
def choose() -> Choose:
    """The build hook's own choice."""
    spec = importlib.util.spec_from_file_location("hatch_build", _ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    chosen: Choose = hook._chosen
    return chosen


def _both_packages(folder: Path) -> Path:
    """As they stand beside each other in a wheel."""
    for package in (_ROOT / "pandaeval_otel", _ROOT / "collector/pandaeval_collector"):
        copytree(package, folder / package.name, ignore=ignore_patterns("__pycache__"))
    return folder


def test_every_pattern_of_the_build_names_modules(choose: Choose, tmp_path: Path) -> None:
    chosen = choose(_both_packages(tmp_path), _HOOK["compile"], _HOOK["leave"])
    for module in ("decode", "dialects/gen_ai", "model/span", "normal/trace", "raw", "wire"):
        assert f"pandaeval_otel/{module}.py" in chosen
    assert "pandaeval_otel/model/__init__.py" not in chosen


@pytest.mark.parametrize(
    ("compiled", "left"), [(["a/*.py", "gone.py"], []), (["a/*.py"], ["gone.py"]), (["a/*.py"], ["b.py"])]
)
def test_a_pattern_that_names_no_module_fails_the_build(
    choose: Choose, tmp_path: Path, compiled: list[str], left: list[str]
) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/one.py", "a/two.py", "b.py"):
        (tmp_path / name).touch()
    assert choose(tmp_path, ["a/*.py"], ["**/two.py"]) == ["a/one.py"]
    with pytest.raises(RuntimeError, match=r"(gone|b)\.py names no module"):
        choose(tmp_path, compiled, left)


def test_compiled_wheels_are_made_for_every_python_that_is_supported() -> None:
    named = [re.fullmatch(r".*Python :: 3\.(\d+)", each) for each in _PYPROJECT["project"]["classifiers"]]
    assert _WHEELS["build"].split() == [f"cp3{minor[1]}-*" for minor in named if minor is not None]


def test_compiled_wheels_are_compiled_and_held_against_the_sources() -> None:
    assert _WHEELS["environment"] == {"HATCH_BUILD_HOOKS_ENABLE": "1"}
    assert not _HOOK["enable-by-default"], "a wheel for everybody needs no compiler"
    script, checkout = re.findall(r"\{project\}(\S*)", _WHEELS["test-command"])
    assert os.access(_ROOT / script.lstrip("/"), os.X_OK)
    assert checkout == ""
    assert _WHEELS["test-extras"] == ["collector"]
