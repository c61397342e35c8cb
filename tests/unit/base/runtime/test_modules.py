"""User modules by path and name, with clear errors."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType

import pytest

from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module
from pandaeval_collector.scoring.registry import registry

_METRIC = """
from dataclasses import dataclass
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.base.score import Score

@dataclass
class Found:
    value: float

METRIC = Metric("trace", "{name}", "code", "1", 0.5, "Is it so?", "-", lambda trace, context: Score(Found(1.0).value))
"""


def metric(folder: Path, name: str, file: str = "own.py") -> Path:
    path = folder / file
    path.write_text(_METRIC.format(name=name))
    return path


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    path = metric(tmp_path, "one")
    assert load_module(str(path)) is load_module(str(path))


def test_files_of_the_same_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = [metric(tmp_path / folder, f"of_{folder}") for folder in "ab"]
    assert load_module(str(files[0])) is not load_module(str(files[1]))
    assert {"trace.of_a", "trace.of_b", "trace.coherence"} <= set(registry(tuple(map(str, files))))
    assert "trace.of_a" not in registry()


def test_a_relative_path_starts_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = metric(tmp_path, "near")
    monkeypatch.chdir(tmp_path)
    assert load_module("own.py") is load_module("./own.py") is load_module(str(path))


def test_a_module_name_is_found_on_the_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metric(tmp_path, "packaged", "pandaeval_test_own_metric.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "trace.packaged" in registry(("pandaeval_test_own_metric",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import pandaeval_no_such_module", "ModuleNotFoundError: No module named 'pandaeval_no_such_module'"),
        ("x = 1\nraise ValueError('two\\nlines')", r"ValueError: two\\nlines (FILE:2)"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_the_error_of_a_file_that_fails_names_file_cause_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(text)
    known = set(sys.modules)
    with pytest.raises(ModuleLoadError) as raised:
        load_module(str(path))
    assert str(raised.value).startswith(f"{path} cannot be imported: ")
    assert message.replace("FILE", str(path)).replace("\\\\", "\\") in str(raised.value)
    assert not any("pandaeval_own" in name for name in set(sys.modules) - known), "a broken module is not kept"


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("nowhere/own.py", "there is no file .*/nowhere/own.py; a path counts from the working directory"),
        ("own/metrics.txt", "metrics.txt is no Python file"),
        ("pandaeval_no_such_module", "there is no module pandaeval_no_such_module; write the path of its file"),
        ("json", "json: it holds no METRIC"),
    ],
)
def test_an_unusable_module_is_an_error_with_advice(module: str, message: str) -> None:
    with pytest.raises(ModuleLoadError, match=message):
        registry((module,))


def test_a_metric_name_that_exists_is_an_error(tmp_path: Path) -> None:
    path = metric(tmp_path, "coherence")
    with pytest.raises(ModuleLoadError, match=r"there is a metric trace\.coherence already; give it another name"):
        registry((str(path),))
    twice = str(metric(tmp_path, "again", "other.py"))
    with pytest.raises(ModuleLoadError, match=r"there is a metric trace\.again already"):
        registry((twice, twice))


def test_a_second_thread_gets_a_complete_module(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("import pandaeval_free as gate\ngate.began.set()\ngate.go.wait(30)\nend = 1\n")
    gate = ModuleType("pandaeval_free")
    gate.began, gate.go = threading.Event(), threading.Event()  # type: ignore[attr-defined]
    sys.modules["pandaeval_free"] = gate
    try:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(load_module, str(path))
            assert gate.began.wait(30)
            second = pool.submit(load_module, str(path))
            assert not wait([second], 0.1).done
            gate.go.set()
            assert first.result(30).end == second.result(30).end == 1
    finally:
        del sys.modules["pandaeval_free"]
