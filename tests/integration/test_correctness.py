"""Correctness of sessions through command and model client."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.internal.encoder import _VarintBytes
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.incident_mix import mix
from support.judge import JudgeAnswer, JudgeServer, question_of, rubric_of
from support.judged_files import Result, environ
from support.scripted_judge import GOOD, scripted_reply

CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
SESSION = CAPTURES / "langgraph_genai" / "good_session.otlp.jsonl"
ALONE = CAPTURES / "openai_openllmetry" / "good.otlp.jsonl"
LATE = {"thing": "renew the loan", "became": "wrong", "shown_by": "call 5"}


class Script:
    """Passes single runs. For conversations, contradicts itself once and then fails them."""

    def __init__(self, suspect: dict[str, Any] | None = None) -> None:
        self._suspects = [] if suspect is None else [suspect]
        self.asked: list[str] = []
        self.questions: list[str] = []

    def __call__(self, number: int, body: dict[str, Any]) -> JudgeAnswer:
        name = rubric_of(body)
        self.questions.append(question_of(body))
        reply = json.loads(scripted_reply(body["messages"], name, GOOD))
        if name == "conversation":
            reply |= {"things": [LATE], "first_wrong_step": "call 5", "sure": 9}
            reply["correct"] = name not in self.asked
        if self._suspects and name in ("conversation", "correctness"):
            reply["suspects"] = self._suspects
        self.asked.append(name)
        return JudgeAnswer(json.dumps(reply))


def evaluated(script: Script, monkeypatch: pytest.MonkeyPatch, metrics: str, *files: Path) -> list[Result]:
    with JudgeServer(script) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        arguments = ["evaluate", *map(str, files), "--metrics", metrics, "--format", "json"]
        outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def test_a_session_and_a_trace_without_session_need_one_judge_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    results = evaluated(script, monkeypatch, "correctness,goal_completion,user_friction,blame", SESSION, ALONE)
    asked = {"conversation": 2, "correctness": 1, "error_deduplication": 1}
    assert Counter(script.asked) == asked, "one call and its repair, one call for the trace, and one for all failures"
    by_name = {f"{each['level']}.{each['metric']}": each for each in results}
    assert {name: each["score"] for name, each in by_name.items()} == {
        "session.correctness": 0.09,
        "session.goal_completion": 1.0,
        "session.user_friction": 1.0,
        "trace.correctness": 0.9,
        "trace.blame": 1.0,
    }
    wrong = by_name["session.correctness"]
    assert (wrong["label"], wrong["success"]) == ("wrong_thing", False)
    assert wrong["metadata"]["things"] == [LATE]
    step, named = by_name["trace.blame"]["metadata"]["step"], wrong["metadata"]["blame"]
    assert (step["tool"], step["reasons"]) == ("renew_loan", ["found by correctness"])
    assert (by_name["trace.blame"]["trace_id"], step["span_id"]) == (named["trace_id"], named["span_id"])
    assert wrong["span_ids"] == [step["span_id"]]
    assert (
        by_name["session.goal_completion"]["metadata"]["judge"]["calls"] == 0
        or wrong["metadata"]["judge"]["calls"] == 0
    )


def test_every_trace_of_a_session_is_judged_if_judge_correctness_is_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDAEVAL_JUDGE__CORRECTNESS", "trace")
    script = Script()
    results = evaluated(script, monkeypatch, "trace.correctness,agent_reliability", SESSION)
    assert Counter(script.asked) == {"correctness": 4}
    assert sum("Earlier requests that are still open count" in each for each in script.questions) == 3, (
        "all traces but the first must list earlier requests"
    )
    [reliability] = [each for each in results if each["metric"] == "agent_reliability"]
    signals = reliability["metadata"]["per_trace_signals"].values()
    assert [round(each["correctness_risk"], 6) for each in signals] == [0.1] * 4


CRASHED = CAPTURES / "openai_openllmetry" / "crashed.otlp.jsonl"


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_unclear_run_is_counted_separately_and_fails_no_gate(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    def unsure(_: int, body: dict[str, Any]) -> JudgeAnswer:
        return JudgeAnswer(
            json.dumps(json.loads(scripted_reply(body["messages"], rubric_of(body), GOOD)) | {"sure": 60})
        )

    monkeypatch.setenv("PANDAEVAL_METRICS__THRESHOLDS", '{"trace.correctness": 0.9}')
    with JudgeServer(unsure) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        outcome = CliRunner().invoke(app, ["evaluate", str(ALONE), "--metrics", "trace.correctness", "--format", form])
    assert outcome.exit_code == 0, outcome.output
    if form == "json":
        result = json.loads(outcome.stdout)
        assert (result["label"], result["success"], result["score"]) == ("unclear", None, 0.6)
    else:
        assert outcome.stdout.startswith("runs handled correctly: 0 decided, 1 unclear\n")
        assert "passes unmeasured: 0 decided, 1 unclear" in outcome.output
        assert re.search(r"trace\.correctness +1 +0 +0 +0 decided, 1 unclear", outcome.output), outcome.output
        assert re.search(r"1 +unclear +trace.correctness 0.60 \(unclear\): It was found", outcome.output), (
            outcome.output
        )


def test_a_crash_that_a_judge_finds_correct_is_disputed(monkeypatch: pytest.MonkeyPatch) -> None:
    def sure(_: int, body: dict[str, Any]) -> JudgeAnswer:
        return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD))

    with JudgeServer(sure) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        arguments = ["evaluate", str(CRASHED), "--metrics", "trace.correctness,response", "--format", "json"]
        outcome = CliRunner().invoke(app, arguments)
    found = {each["metric"]: each for each in map(json.loads, outcome.stdout.splitlines())}
    verdict, response = found["correctness"], found["response"]
    assert (verdict["label"], verdict["success"], verdict["score"]) == ("disputed", None, 0.9)
    assert verdict["metadata"]["disputed_by"]["reason"] == response["reason"]
    assert response["label"] == "error"


def test_values_that_grounding_suspects_are_sent_to_the_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For single traces and sessions."""
    made_up = {
        ALONE: ("refund of 59.00 EUR. The copper", "refund of 83.70 EUR. The copper"),
        SESSION: ("number B-310: 2 copies", "number B-977: 2 copies"),
    }
    files = []
    for file, (said_so, instead) in made_up.items():
        text = file.read_text(encoding="utf-8")
        assert said_so in text
        files.append(tmp_path / f"{len(files)}.otlp.jsonl")
        files[-1].write_text(text.replace(said_so, instead), encoding="utf-8")
    script = Script({"number": 1, "became": "confirmed"})
    results = evaluated(script, monkeypatch, "correctness,grounding", *files)
    became = {
        (each["level"], *found.values())
        for each in results
        if each["metric"] == "correctness"
        for found in each["metadata"]["suspects"]
    }
    loose = {
        (each["session_id"], value["value"], each["trace_id"], value["span_id"], "confirmed")
        for each in results
        if each["metric"] == "grounding"
        for key in ("not_grounded", "suspect", "for_judge")
        for value in each["metadata"].get(key, ())
    }
    assert became == {("session" if session else "trace", *rest) for session, *rest in loose}
    assert len(became) == 2


def test_a_session_with_a_crash_or_a_false_claim_of_success_is_disputed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def sure(_: int, body: dict[str, Any]) -> JudgeAnswer:
        return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD))

    data = mix(1).SerializeToString()
    (tmp_path / "mix.pb").write_bytes(_VarintBytes(len(data)) + data)
    with JudgeServer(sure) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        arguments = ["evaluate", str(tmp_path / "mix.pb"), "--metrics", "session.correctness,response"]
        outcome = CliRunner().invoke(app, [*arguments, "--format", "json"])
        table = CliRunner().invoke(app, arguments)
    found = [each for each in map(json.loads, outcome.stdout.splitlines()) if each["metric"] == "correctness"]
    labels = {each["session_id"]: each["label"] for each in found}
    lies = dict.fromkeys(("send_reminder", "cancel_order", "update_address"), "disputed")
    assert labels == {**lies, "crash-0": "disputed", "loop": "pass"}
    assert table.output.startswith("1 session was handled correctly: 100 % of 1 decided (21% to 100%), 4 disputed\n")
