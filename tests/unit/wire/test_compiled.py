"""The compiled build says what the source says; run by ``.ci/compiled``, on a checkout with a wheel's modules in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from shutil import copytree, ignore_patterns

import pandaeval_collector
import pytest

import pandaeval_otel
from pandaeval_otel.compiled import is_compiled
from pandaeval_otel.model import Trigger
from pandaeval_otel.normal.trace import Closing

_ROOT = Path(__file__).parents[3]
_TOLD = _ROOT / "tests/support/told.py"
_PACKAGES = [Path(package.__path__[0]) for package in (pandaeval_otel, pandaeval_collector)]
_HOOK = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
compiled_only = pytest.mark.skipif(not is_compiled(), reason="not compiled: .ci/compiled runs this")


def _modules() -> set[Path]:
    """Those that the build compiles, below the folder that each package stands in."""
    chosen: set[Path] = set()
    for package in _PACKAGES:
        for pattern in _HOOK["custom"]["compile"]:
            chosen |= set(package.parent.glob(pattern))
        for pattern in _HOOK["custom"]["leave"]:
            chosen -= set(package.parent.glob(pattern))
    return {path for path in chosen if path.suffix == ".py"}


def _without_libraries(folder: Path) -> Path:
    for package in _PACKAGES:
        copytree(package, folder / package.name, ignore=ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return folder


def _told(path: str, *arguments: Path) -> list[str]:
    environ = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-P", _TOLD, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_is_compiled_is_there_and_is_no_package_or_protocol() -> None:
    modules = _modules()
    assert len(modules) > 50
    assert not {path for path in modules if path.name in ("__init__.py", "_protocol.py")}
    if is_compiled():
        assert not {path for path in modules if not list(path.parent.glob(f"{path.stem}.*.so"))}


@compiled_only
def test_captures_give_the_same_traces_results_and_order_as_the_source(tmp_path: Path) -> None:
    captures = sorted((_ROOT / "tests/golden/captures").glob("*/*.jsonl"))
    here = _told(os.pathsep.join(str(package.parent) for package in _PACKAGES), *captures)
    pure = _told(str(_without_libraries(tmp_path)), *captures)
    assert (here[0], pure[0]) == ("compiled", "pure")
    assert len(here) > len(captures) > 50
    assert here[1:] == pure[1:]


@compiled_only
def test_a_dialect_and_a_metric_of_a_users_own_stand_beside_compiled_ones(tmp_path: Path) -> None:
    """Both kinds of file are found in one order, whatever they are made of."""
    for package in _PACKAGES:
        copytree(package, tmp_path / package.name, ignore=ignore_patterns("__pycache__"))
    (tmp_path / "pandaeval_otel/dialects/my_own.py").write_text(
        (_ROOT / "pandaeval_otel/dialects/strands.py").read_text().replace('"strands"', '"my_own"')
    )
    metrics = tmp_path / "pandaeval_collector/metrics/trace"
    own = (metrics / "tool_loop.py").read_text().replace('"tool_loop"', '"my_own"')
    (metrics / "my_own.py").write_text(own)
    library = next(_PACKAGES[0].parent.glob("*__mypyc*"))
    build, dialects, found = _told(os.pathsep.join([str(tmp_path), str(library.parent)]))
    assert build == "compiled"
    assert dialects.split() == sorted(dialects.split())
    assert "my_own" in dialects.split()
    assert found.split() == sorted(found.split())
    assert "trace.my_own" in found.split()


def test_compiled_modules_are_free_of_what_mypyc_gives_another_meaning() -> None:
    """It makes a property of a cached property, silently: worked out anew each time, and what is changed in it lost."""
    assert not {path for path in _modules() if "cached_property" in path.read_text()}


def test_values_are_replaced_and_compared() -> None:
    """What Python's own tools do with dataclasses, they do with compiled ones."""
    closing = Closing(Trigger.IDLE, 2)
    assert replace(closing, late_spans=3) == Closing(Trigger.IDLE, 2, 3)
    assert [field.name for field in fields(closing)] == list(Closing.__match_args__)
    assert len({closing, Closing(Trigger.IDLE, 2)}) == 1
    assert repr(Closing()) == "Closing(trigger=<Trigger.FILE: 'file'>, revision=1, late_spans=0)"
    with pytest.raises(AttributeError):
        closing.revision = 3  # type: ignore[misc]
