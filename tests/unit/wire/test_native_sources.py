"""What is rewritten for mypyc means what it meant."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parents[3]
_SOURCES = sorted(
    path for folder in ("pandaeval_otel", "collector/pandaeval_collector") for path in (_ROOT / folder).rglob("*.py")
)
_SAMPLE = '''
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
LIMIT = 5
LIMITS = (4, 1 << 5)
NAMES = frozenset({"a"})
BY_NAME: dict[str, int] = {}
_TWICE = "a"
_TWICE = "b"
_COUNTED = "a"


@dataclass(slots=True, unsafe_hash=True)
class Plain:
    """Words."""

    name: str
    kind: str = field(default="x", compare=False)
    sizes: list[int] = field(default_factory=list)
    """A list."""
    total: int = field(init=False)
    seen: dict[str, int] = field(default_factory=dict, init=False)
    note: str | None = None

    def __post_init__(self) -> None:
        self.total = len(self.sizes)


@dataclass(frozen=True)
class Frozen:
    both: tuple[int, ...] = (1, 2)


@dataclass
class Own:
    name: str

    def __init__(self) -> None:
        self.name = "own"


class Ordinary:
    name: str = "x"


def count() -> None:
    global _COUNTED
    _COUNTED = "b"
'''


@pytest.fixture(scope="module")
def native() -> Callable[[str], str]:
    spec = importlib.util.spec_from_file_location("native_sources", _ROOT / "native_sources.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rewritten: Callable[[str], str] = module.native
    return rewritten


def _run(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def test_constructors_do_what_those_of_dataclasses_do(
    native: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = native(_SAMPLE).replace("@dataclass(frozen=True)", "@dataclass")  # frozen for the interpreter alone
    before, after = _run(_SAMPLE, "before", monkeypatch), _run(source, "after", monkeypatch)
    assert "def __init__(self, name: str, kind: str = 'x', sizes: list[int] | None = None" in source
    assert [*inspect.signature(after.Plain).parameters] == [*inspect.signature(before.Plain).parameters]
    for arguments in (("a",), ("a", "b", [1, 2], "n")):
        assert repr(after.Plain(*arguments)) == repr(before.Plain(*arguments))
    assert after.Plain("a").sizes is not after.Plain("a").sizes
    assert after.Plain("a") == after.Plain("a", "other")
    assert (after.Frozen().both, after.Own().name) == ((1, 2), "own")
    with pytest.raises(TypeError):
        after.Plain()


def test_constants_are_declared_but_for_numbers_and_what_changes(native: Callable[[str], str]) -> None:
    declared = [line.partition(":")[0] for line in native(_SAMPLE).split("\n") if ": Final_" in line]
    assert declared == ["NAMES", "BY_NAME"]


def test_no_line_of_any_module_moves(native: Callable[[str], str]) -> None:
    for path in _SOURCES:
        before, after = path.read_text(), native(path.read_text())
        places = [[n.lineno for n in ast.walk(ast.parse(s)) if isinstance(n, ast.ClassDef)] for s in (before, after)]
        assert places[0] == places[1], path
        assert before.count("\n") == after.count("\n"), path


def test_a_factory_whose_field_may_be_none_is_refused(native: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match=r"Some\.which is made by a factory"):
        native(
            "from __future__ import annotations\n\n@dataclass\nclass Some:\n"
            "    which: list[int] | None = field(default_factory=list)\n\n"
        )
