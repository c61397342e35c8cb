"""Comparison of agents, and case files by pattern."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_lab.cases.files import case_files, read_suites
from pandaeval_lab.cli._case_agents import compare_agents, compared, named_agents
from pandaeval_lab.passk.gate import p_value


def _documents(passed: Mapping[str, Sequence[bool]]) -> list[dict[str, Any]]:
    return [
        {
            "level": "trial",
            "metric": "trial_correct",
            "outcome": "scored",
            "score": float(is_right),
            "success": is_right,
            "session_id": f"{case}/{number}",
            "trace_id": f"{case}{number}",
            "span_id": "1",
            "agent": "shop",
            "revision": 1,
            "metadata": {"case": case, "trial": str(number), "case_kind": "regression"},
        }
        for case, trials in passed.items()
        for number, is_right in enumerate(trials)
    ]


def test_agents_have_the_name_that_is_given_else_their_own() -> None:
    agents = ["app:answer", "new=./app.py:new", "http://127.0.0.1:8000/chat?model=a"]
    assert named_agents(agents) == {
        "app-answer": "app:answer",
        "new": "./app.py:new",
        "http-127.0.0.1-8000-chat-model-a": "http://127.0.0.1:8000/chat?model=a",
    }


def test_two_agents_with_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="the name a is taken; write NAME=x:z"):
        named_agents(["a=x:y", "a=x:z"])


def test_agents_are_compared_by_the_test_of_the_baseline_gate() -> None:
    good, bad = {"a": [True] * 5, "b": [True] * 5}, {"a": [False] * 5, "b": [True] * 5, "c": [True]}
    rows = list(compared("trial.trial_correct", {"one": _documents(good), "two": _documents(bad)}))
    assert [row["case"] for row in rows] == [None, "a", "b"]  # c has no trial of the first agent
    assert rows[0]["agents"] == {
        "one": {"trials": 10, "passed": 10, "mean": 1.0},
        "two": {"trials": 10, "passed": 5, "mean": 0.5},
    }
    test = rows[0]["against_first"]["two"]
    assert test["difference"] == -0.5
    assert test["p"] == pytest.approx(2 * p_value([((5, 5), (5, 0)), ((5, 5), (5, 5))]))
    assert rows[1]["against_first"]["two"]["p"] == pytest.approx(1 / 252)
    assert rows[2]["against_first"]["two"]["p"] == 1.0


def test_the_order_of_two_agents_changes_no_p_value() -> None:
    one, two = _documents({"a": [True, True, False]}), _documents({"a": [False, False, True]})
    first, second = (
        next(compared("trial.trial_correct", {"x": left, "y": right}))["against_first"]["y"]
        for left, right in ((one, two), (two, one))
    )
    assert first["p"] == pytest.approx(second["p"])
    assert first["difference"] == -second["difference"]


def test_the_table_leaves_out_equal_cases_and_the_file_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = {"same": [True], "other": [True]}, {"same": [True], "other": [False]}
    compare_agents({"one": _documents(good), "two": _documents(bad)}, tmp_path)
    shown = capsys.readouterr().out
    assert "other" in shown
    assert "same" not in shown
    assert [row["case"] for row in json.loads((tmp_path / "comparison.json").read_text())] == [None, "other", "same"]


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


def test_two_files_with_one_id_are_refused(tmp_path: Path) -> None:
    paths = [_write(tmp_path / name, "cases: [{id: a}]") for name in ("one.yaml", "two.yaml")]
    with pytest.raises(UserError, match=r"two.yaml: the id a is also in .*one.yaml; rename"):
        read_suites(paths)
