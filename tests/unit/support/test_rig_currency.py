"""Comparisons of newer framework releases."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.golden.conformance_capture import read
from tests.golden.conformance_truth import OWN
from tests.lab.rig import current
from tests.lab.rig.current import Outcome, changes, newest
from tests.lab.rig.environment import Framework, frameworks
from tests.lab.rig.play import Run
from tests.lab.rig.reading import Facts, facts, gained, lost

GOOD = OWN / "pydantic_ai" / "good.otlp.jsonl"


@pytest.fixture(scope="module")
def pinned() -> Facts:
    return facts(one.trace for one in read(GOOD))


def test_a_run_compared_with_itself_loses_and_gains_nothing(pinned: Facts) -> None:
    assert lost(pinned, pinned) == [] == gained(pinned, pinned)


def test_a_good_run_has_a_value_for_every_fact_but_errors(pinned: Facts) -> None:
    assert [fact for fact, values in pinned.items() if not values] == ["errors"]


@pytest.mark.parametrize(
    ("renamed", "fact"),
    [
        (['"final_result"', '"gen_ai.output.messages"', '"pydantic_ai.all_messages"'], "output"),
        (['"gen_ai.tool.definitions"', '"model_request_parameters"'], "tools"),
        (['"gen_ai.usage.input_tokens"'], "tokens"),
        (['"gen_ai.conversation.id"'], "session"),
        (['"gen_ai.tool.call.result"', '\\"result\\"', '\\"response\\"'], "results"),
        (['"gen_ai.agent.name"', '"agent_name"', '"invoke_agent '], "agent"),
    ],
)
def test_a_fact_is_lost_if_its_attributes_are_renamed(
    tmp_path: Path, pinned: Facts, renamed: list[str], fact: str
) -> None:
    text = GOOD.read_text()
    for name in renamed:
        text = text.replace(name, f"{name[:2]}x{name[2:]}")
    path = tmp_path / "good.otlp.jsonl"
    path.write_text(text)
    assert fact in lost(pinned, facts(one.trace for one in read(path)))


def test_different_values_are_lost_and_run_specific_values_are_only_counted(pinned: Facts) -> None:
    other = {**pinned, "session": ('"another"',)}
    assert lost(pinned, other) == ["session"]
    assert lost(pinned, other, own=["session"]) == []
    assert lost(pinned, {**pinned, "session": ()}, own=["session"]) == ["session"]


def test_a_new_error_is_a_loss_and_other_new_facts_are_gains(pinned: Facts) -> None:
    assert lost(pinned, {**pinned, "errors": ('"boom"',)}) == ["errors"]
    before = {**pinned, "reasoning": ()}
    assert (lost(before, pinned), gained(before, pinned)) == ([], ["reasoning"])


def test_pins_are_removed_except_the_node_sdk_and_fixed_major_versions() -> None:
    python = Framework("x", "x.py", ("crewai==1.2", "pydantic-ai-slim[openai]==2.0b1", "opentelemetry-sdk==1.4"))
    assert newest(python).requirements == ("crewai", "pydantic-ai-slim[openai]", "opentelemetry-sdk")
    held = dataclasses.replace(python, majors={"crewai": "1"})
    assert newest(held).requirements[0] == "crewai==1.*"
    node = Framework("y", "y.mjs", ("ai@6.0.1", "@ai-sdk/otel@1.0.1", "@opentelemetry/api@1.9.0"), majors={"ai": "6"})
    assert newest(node).requirements == ("ai@6", "@ai-sdk/otel@latest", "@opentelemetry/api@1.9.0")


def test_changed_versions_are_shown_as_old_and_new() -> None:
    set_ = Framework("x", "x.py", ("crewai==1.2", "Some_Client[a]==3.0", "opentelemetry-sdk==1.4"))
    installed = {"crewai": "1.3", "some.client": "3.0", "opentelemetry-sdk": "1.5"}
    assert changes(set_, installed) == "crewai 1.2 → 1.3, Some_Client[a] 3.0 (still)"


def test_the_line_of_an_outcome_lists_lost_and_new_facts() -> None:
    assert Outcome("x", "a 1 → 2").line == "x: a 1 → 2: same"
    gone = Outcome("x", "a 1 → 2", lost=("tokens", "agent"), gained=("reasoning",))
    assert (gone.line, gone.well) == ("x: a 1 → 2: lost: tokens, agent; new: reasoning", False)


class _Stage:
    """Plays a run without telemetry."""

    def play(self, framework: Framework, name: str, scenario: object) -> Run:
        return Run([], 0, False, "no telemetry")


def test_failed_installation_and_missing_telemetry_are_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.lab.rig.environment.VENVS", tmp_path)
    framework = frameworks()["pydantic_ai"]

    def refused(self: Framework) -> None:
        raise OSError("no index")

    monkeypatch.setattr(Framework, "install", refused)
    outcome = current.compared(_Stage(), framework)  # type: ignore[arg-type]
    assert (outcome.problem, outcome.well) == ("not played: no index", False)

    monkeypatch.setattr(Framework, "install", lambda self: self.folder.mkdir(parents=True, exist_ok=True))
    monkeypatch.setattr(Framework, "versions", lambda self: {"pydantic-ai-slim": "3.0"})
    outcome = current.compared(_Stage(), framework)  # type: ignore[arg-type]
    assert "run FAILED" in outcome.problem
    assert "→ 3.0" in outcome.versions


def test_a_comparison_of_today_is_reused_unless_it_had_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "NEWEST", tmp_path)
    assert current.earlier("x") is None
    current.keep(Outcome("x", "a 1", lost=("agent",)))
    assert current.earlier("x") == Outcome("x", "a 1", lost=("agent",))
    monkeypatch.setattr(current, "today", lambda: "2000-01-01")
    assert current.earlier("x") is None
    current.keep(Outcome("x", "a 1", problem="not played"))
    assert current.earlier("x") is None
