"""The name and the consent of the person at the terminal."""

from __future__ import annotations

import getpass

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.cli._person import user_name
from pandaeval_collector.cli._run_place import ApiClient

TRIAL = {"traces": 1, "calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "cost_usd": None}
ANSWER = {**TRIAL, "rows": {"traces": 1}, "sinks": [], "complete": True}
REFUSED = {("delete", "--user", "a"): "nothing is deleted", ("rulings", "answer", "It."): "the judge is not asked"}


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Answer requests in place of a collector, and return their bodies."""
    found: list[object] = []

    def post(self: ApiClient, path: str, body: object = None) -> dict[str, object]:
        found.append(body)
        return ANSWER

    monkeypatch.setattr(ApiClient, "post", post)
    return found


@pytest.mark.parametrize("command", [*REFUSED])
@pytest.mark.parametrize(("answer", "code", "cure"), [("n\n", 0, ""), ("", 2, ": confirm, or add --yes")])
def test_a_refusal_exits_with_0_and_a_missing_answer_with_2(
    posted: list[object], command: tuple[str, ...], answer: str, code: int, cure: str
) -> None:
    done = CliRunner().invoke(app, [*command], input=answer)
    assert done.exit_code == code, done.output
    assert done.stderr.endswith(f"{REFUSED[command]}{cure}\n")
    assert len(posted) == 1, "only the dry run is requested"


@pytest.mark.parametrize("error", [KeyError, OSError, ImportError])
def test_a_user_id_without_a_passwd_entry_has_no_name_and_can_delete(
    monkeypatch: pytest.MonkeyPatch, posted: list[object], error: type[Exception]
) -> None:
    def getuser() -> str:
        raise error("getpwuid(): uid not found: 1000660000")

    monkeypatch.setattr(getpass, "getuser", getuser)
    assert user_name() == ""
    done = CliRunner().invoke(app, ["delete", "--user", "a", "--yes"])
    assert done.exit_code == 0, done.output
    assert posted[-1] == {"user": "a", "by": ""}
