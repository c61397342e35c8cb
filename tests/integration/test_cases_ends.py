"""``pandaeval cases run``: every end of a conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pandaeval_lab.replay.result_lines import result_lines
from support.judge import Behave, JudgeAnswer, JudgeServer, rubric_of
from support.scripted_judge import GOOD, scripted_reply

# An agent that calls the tool and answers with the text that its model returns.
AGENT = """
import json, os, time, urllib.request
from opentelemetry import trace

def said(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

def answer(messages, context):
    if context.case == "agent-crashes" and context.turn == 1:
        raise ValueError("no such order")
    if context.case == "agent-hangs":
        time.sleep(3600)
    body = {"model": "m", "messages": [{"role": "system", "content": f"shop: {context.case}"}, *messages]}
    request = urllib.request.Request(os.environ["MODEL"] + "/chat/completions", json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request) as reply:
        says = json.loads(json.load(reply)["choices"][0]["message"]["content"])
    tracer = trace.get_tracer("shop")
    with tracer.start_as_current_span("invoke_agent shop") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
        agent.set_attribute("gen_ai.input.messages", said("user", messages[-1]["content"]))
        if says["tool"]:
            with tracer.start_as_current_span("execute_tool " + says["tool"]) as call:
                call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": says["tool"]})
                call.set_attributes({"gen_ai.tool.call.arguments": '{"order": 17}', "gen_ai.tool.call.result": "ok"})
        agent.set_attribute("gen_ai.output.messages", said("assistant", says["text"]))
    return says["text"]
"""
ENDS = ("goal-met", "given-up", "turn-limit", "agent-crashes", "agent-hangs", "user-invents", "user-loops")
CORRECT = {"goal-met": 1.0, "given-up": 0.0, "turn-limit": 0.0, "agent-crashes": 0.0, "agent-hangs": 0.0}


def _plays(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Play the shop's agent, else the case's user."""
    first, *talk = [str(message["content"]) for message in body["messages"]]
    heard = len(talk) // 2
    if first.startswith("shop: "):
        case = first.removeprefix("shop: ")
        texts = {"goal-met": "Order 17 is refunded.", "given-up": "I refund nothing."}
        reply = {
            "tool": "refund_order" if case == "goal-met" else "",
            "text": texts.get(case, f"Which order?{'!' * heard}"),
        }
        return JudgeAnswer(json.dumps(reply))
    case = next(name for name in ENDS if f"the end {name}" in first)
    state, message = "going_on", f"Money back for order 17{', please' * heard}"
    if case == "user-invents":
        message = "Money back for A-1733"
    elif case == "user-loops":
        message = "Money back"
    elif heard and case in ("goal-met", "given-up"):
        state, message = case.replace("-", "_"), ""
    return JudgeAnswer(json.dumps({"reason": "so", "state": state, "message": message}))


def _case(name: str, conversations: int) -> dict[str, Any]:
    scenario = {
        "goal": f"Get the money for order 17 back, the end {name}",
        "knowledge": ["the order is 17"],
        "max_turns": 4,
        "conversations": conversations,
    }
    return {"id": name, "expected_outcome": {"tools_called": ["refund_order"]}, "scenario": scenario}


def _run(
    folder: Path, cases: list[dict[str, Any]], behave: Behave, *options: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """Run the command; return exit and results."""
    (folder / "shop.py").write_text(AGENT)
    (folder / "suite.json").write_text(json.dumps({"cases": cases}))
    with JudgeServer(behave) as server:
        judge = {"api_base": server.url, "api_key_env": "JUDGE_KEY"}
        (folder / "pandaeval.yaml").write_text(json.dumps({"judge": judge}))
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from pandaeval_collector.cli import main; main()"),
                *("cases", "run", "suite.json", "--agent", "shop:answer", "--simulate", "openai/m"),
                *("-c", "pandaeval.yaml", "--turn-timeout", "5s", "--concurrency", "10", *options),
            ],
            cwd=folder,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("PANDAEVAL", "GITHUB"))},
                "JUDGE_KEY": "sk-test",
                "MODEL": server.url,
            },
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    return done, [*result_lines(folder / "pandaeval-run" / "results.jsonl")]


@pytest.mark.parametrize("conversations", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_every_end_of_a_conversation_is_reported_with_its_score_and_cause(tmp_path: Path, conversations: int) -> None:
    cases = [_case(name, conversations) for name in ENDS]
    done, results = _run(tmp_path, cases, _plays, "--metrics", "trial_correct")
    assert done.returncode == 1, done.stderr
    folder, n = tmp_path / "pandaeval-run", conversations
    correct = {
        (each["metadata"]["case"], each["metadata"]["trial"]): each["score"] if each["why"] is None else each["why"]
        for each in results
        if each["metric"] == "trial_correct"
    }
    trials = [(name, str(trial)) for name in ENDS for trial in range(1, n + 1)]
    assert correct == {(name, trial): CORRECT.get(name, "simulator_failed") for name, trial in trials}

    # Output for people and for CI systems.
    errors = done.stderr
    ends = {"goal_met": n, "given_up": n, "turn_limit": n, "agent failed": 2 * n, "spoilt": 2 * n}
    ends_text = errors.split("; conversations: ")[1].splitlines()[0]
    assert {how: int(count) for how, _, count in (each.rpartition(" ") for each in ends_text.split(", "))} == ends
    assert f"the agent failed in {2 * n} attempts; agent-crashes, trial 1: ValueError: no such order" in errors
    spoilt = "the simulated user failed (no score; the traces are in simulator_failed.pb) in"
    assert f"{spoilt} {2 * n} attempts; user-invents, trial 1" in errors
    missed = {line.split(":")[1].split()[1] for line in errors.splitlines() if line.startswith("failed: case ")}
    assert missed == {name for name, score in CORRECT.items() if not score}
    tests = Counter[tuple[str, str]]()
    for test in ElementTree.parse(folder / "cases.xml").iter("testcase"):
        state = next((child.tag for child in test if child.tag in ("failure", "skipped")), "passed")
        tests[str(test.get("name")).partition(" ")[0], state] += 1
    assert {name: tests[name, "failure"] for name in CORRECT} == {
        name: n * (1 - score) for name, score in CORRECT.items()
    }
    assert tests["user-invents", "skipped"] == tests["user-loops", "skipped"] == n


def _judges_too(number: int, body: dict[str, Any]) -> JudgeAnswer:
    if any("echo" in str(message["content"]) for message in body["messages"]):
        return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD))
    return _plays(number, body)


@pytest.mark.slow
def test_a_judge_rates_all_turns_and_conversations_except_those_the_simulator_broke(tmp_path: Path) -> None:
    cases = [_case("goal-met", 2), _case("turn-limit", 1), _case("user-loops", 2)]
    names = "helpfulness,goal_completion,session.correctness,trial_correct"
    done, results = _run(tmp_path, cases, _judges_too, "--model", "openai/judge", "--metrics", names)
    found = Counter((each["metric"], str(each["session_id"]).partition("/")[0]) for each in results)
    for metric in ("goal_completion", "correctness"):
        assert (found[metric, "goal-met"], found[metric, "turn-limit"], found[metric, "user-loops"]) == (2, 1, 0)
    assert (found["helpfulness", "goal-met"], found["helpfulness", "turn-limit"]) == (2, 4), "each turn must be rated"
    assert found["helpfulness", "user-loops"] == 0
    assert "failed: case turn-limit: 1 of 1 trial not correct" in done.stderr
    assert done.returncode == 1
