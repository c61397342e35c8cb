"""Case files by pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_lab.cases.files import case_files, read_suites


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_folders_and_patterns_name_case_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _write(tmp_path / "cases/one.yaml", "name: one\ncases: [{id: a}]")
    two = _write(tmp_path / "cases/deep/two.json", '{\n  "cases": [{"id": "b"}]\n}')
    _write(tmp_path / "cases/compose.yaml", "services: {}")
    monkeypatch.chdir(tmp_path)
    assert case_files(["cases"]) == [two.relative_to(tmp_path), one.relative_to(tmp_path)]
    assert case_files(["cases/**/*.json", "cases/one.yaml"]) == [Path("cases/deep/two.json"), Path("cases/one.yaml")]
    suite = read_suites(case_files(["cases"]))
    assert [case.id for case in suite.cases] == ["b", "a"]
    assert suite.name == "one"


@pytest.mark.parametrize("pattern", ["none/*.yaml", "empty"])
def test_a_pattern_without_a_case_file_is_an_error(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no case file found"):
        case_files([pattern])


def test_two_files_with_the_same_case_id_are_rejected(tmp_path: Path) -> None:
    paths = [_write(tmp_path / name, "cases: [{id: a}]") for name in ("one.yaml", "two.yaml")]
    with pytest.raises(UserError, match=r"two.yaml: the id a is also in .*one.yaml; rename"):
        read_suites(paths)
