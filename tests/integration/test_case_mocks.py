"""Mocked tools in process, over MCP and HTTP; from a failure to a passing case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from pandaeval_lab.replay.result_lines import result_lines
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer
from tests.support.model_server import ModelServer
from tests.support.script import Call, Conversation, Reply

MAIN = (sys.executable, "-c", "from pandaeval_collector.cli import main; main()")
JSON = {"content-type": "application/json"}
ENVIRON = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_", "GITHUB"))}


def pandaeval(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**ENVIRON, **variables}
    return subprocess.run([*MAIN, *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=240)


def run_cases(folder: Path, suite: str, agent: str = "agent:answer", *more: str) -> tuple[str, dict[str, Any]]:
    """Return output and last results of ``cases run``."""
    done = pandaeval(folder, "cases", "run", suite, "--agent", agent, "--metrics", "trial_correct", *more)
    assert done.returncode == int("failed: case " in done.stderr), done.stderr
    results = result_lines(folder / "pandaeval-run" / "results.jsonl")
    trials = {each["metadata"]["case"]: each for each in results if each["metric"] == "trial_correct"}
    return done.stdout + done.stderr, trials


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create the suite and agent of ``init cases``."""
    done = pandaeval(tmp_path, "init", "cases")
    next_ = "pandaeval cases run pandaeval-cases/suite.yaml --agent pandaeval-cases/agent.py:answer\n"
    assert done.stdout == next_, done.stderr
    return tmp_path / "pandaeval-cases"


def mend(shop: Path) -> None:
    """Fix the agent as its first lines describe."""
    text = (shop / "agent.py").read_text()
    mended = text.replace('# if "error"', 'if "error"').replace(
        "what is asked for.", "what is asked for. Say what failed."
    )
    assert mended != text
    (shop / "agent.py").write_text(mended)


@pytest.mark.slow
def test_the_suite_of_init_fails_in_one_of_three_cases_until_the_agent_is_fixed(shop: Path) -> None:
    output, trials = run_cases(shop, "suite.yaml")
    scores = {case: each["score"] for case, each in trials.items()}
    assert scores == {"where-is-my-order": 1.0, "refund": 1.0, "refund-that-fails": 0.0}
    calls = trials["refund-that-fails"]["metadata"]["mock_calls"]
    assert [(call["tool"], call["arguments"], call["kind"]) for call in calls] == [
        ("find_order", {"order": 19}, "result"),
        ("refund_order", {"order": 19}, "error"),
    ]
    assert "no mock fitted" not in output
    assert "no mock was asked" not in output
    tests = ElementTree.parse(shop / "pandaeval-run" / "cases.xml").iter("testcase")
    assert all('"tool": "find_order"' in (test.findtext("system-out") or "") for test in tests)
    mend(shop)
    assert {each["score"] for each in run_cases(shop, "suite.yaml")[1].values()} == {1.0}


@pytest.mark.slow
def test_notices_report_unmatched_calls_and_calls_of_unmocked_tools(shop: Path) -> None:
    agent = (shop / "agent.py").read_text()
    (shop / "agent.py").write_text(agent.replace("@mocked\ndef find_order", "def find_order"))
    suite = yaml.safe_load((shop / "suite.yaml").read_text())
    suite["cases"] = [{**suite["cases"][1], "mocks": {"refund_order": {"when": {"order": 99}, "result": 1}}}]
    (shop / "suite.yaml").write_text(yaml.safe_dump(suite))
    output, trials = run_cases(shop, "suite.yaml")
    assert "notice: refund: no mock fits the expected calls of find_order, refund_order" in output
    assert "notice: no mock matched, so the call was refused: add a result to mocks (refund_order 1×)" in output
    assert "notice: the tool itself answered, not a mock: wrap the tool with mocked (find_order 1×)" in output
    assert [call["kind"] for call in trials["refund"]["metadata"]["mock_calls"]] == ["refused"]


def _refunds(conversation: Conversation) -> Reply:
    """Look up the order, refund it, and report an error only if instructed."""
    called = [name for message in conversation.messages for name in message.calls]
    if len(called) < 2:
        return Reply(calls=(Call(("find_order", "refund_order")[len(called)], {"order": 17}),))
    if any("Say what failed." in message.text for message in conversation.messages):
        return Reply("I could not refund order 17: the card has expired.")
    return Reply("I have refunded order 17.")


PRODUCTION = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalSpanProcessor, using_session

provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor())
trace.set_tracer_provider(provider)
from agent import answer

print(answer("Please refund order 17."))
provider.shutdown()
"""

LANGGRAPH_AGENT = """\
import os

os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor
from pandaeval_lab import mocked


@tool
@mocked
def find_order(order: int, config: RunnableConfig) -> dict:
    '''Where an order is.'''
    return {"order": order, "status": "delivered"}  # here the real shop is asked


@tool
@mocked
def refund_order(order: int) -> dict:
    '''Pays the money for an order back.'''
    return {"error": "the card has expired"}


LangChainInstrumentor().instrument()
model = init_chat_model("gpt-4o-mini", model_provider="openai")
agent = create_agent(model, tools=[find_order, refund_order], name="shop", system_prompt="Refund what is asked for.")


def answer(message: str) -> str:
    return agent.invoke({"messages": [{"role": "user", "content": message}]})["messages"][-1].content
"""


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["none", "langgraph"])
def test_a_case_made_from_a_production_failure_fails_until_the_agent_is_fixed(
    shop: Path, tmp_path: Path, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if framework == "langgraph":
        for module in ("langgraph", "langchain_openai", "opentelemetry.instrumentation.genai.langchain"):
            pytest.importorskip(module)
        (shop / "agent.py").write_text(LANGGRAPH_AGENT)
    with ModelServer({"shop": _refunds}) as model, CollectorProcess(tmp_path / "collector") as collector:
        for name, value in {"OPENAI_BASE_URL": model.url("shop"), "OPENAI_API_KEY": "none"}.items():
            monkeypatch.setitem(ENVIRON, name, value)
        collector.start()
        environ = {**ENVIRON, "PANDAEVAL_ENDPOINT": collector.grpc}
        done = subprocess.run([sys.executable, "-c", PRODUCTION], cwd=shop, env=environ, capture_output=True, text=True)
        assert done.stdout == "I have refunded order 17.\n", done.stderr
        incidents: list[dict[str, Any]] = []
        deadline = time.monotonic() + 120
        while not incidents:
            assert time.monotonic() < deadline, collector.log()
            listed = pandaeval(shop, "failures", "list", "--format", "json", "--url", collector.http)
            incidents = [json.loads(line) for line in listed.stdout.splitlines()]
        made = pandaeval(
            shop, "cases", "from-failure", incidents[0]["id"][:6], "--url", collector.http, "-o", "case.yaml"
        )
        assert made.returncode == 0, made.stderr
        assert f"id: failure-{incidents[0]['id']}\n" in (shop / "case.yaml").read_text()
        _goes_green(shop)


def _goes_green(shop: Path) -> None:
    # The case replays recorded tool results and requires that the finding is absent.
    suite = yaml.safe_load((shop / "case.yaml").read_text())
    (case,) = suite["cases"]
    assert case["unmocked"] == "recorded"
    assert [(each["metric"], each["label"]) for each in case["absent"]] == [("trace.response", "false_success")]
    assert "open" not in case
    # The recorded data no longer exists in the real tool.
    agent = (shop / "agent.py").read_text()
    (shop / "agent.py").write_text(agent.replace('"status": "delivered"', '"status": 1 / 0'))

    output, trials = run_cases(shop, "case.yaml")
    assert trials[case["id"]]["score"] == 0.0, output
    mend(shop)
    output, trials = run_cases(shop, "case.yaml")
    assert trials[case["id"]]["score"] == 1.0, output
    assert [call["kind"] for call in trials[case["id"]]["metadata"]["mock_calls"]] == ["result", "result"]
    assert "no mock was asked" not in output


PLAYED = """
cases:
- id: refund
  scenario:
    goal: Get the money back
    knowledge: [the order is 18]
    first_message: Refund order 18
  mocks:
    find_order: {result: {status: delivered}}
    refund_order: {results: [{error: try again}, {refunded: 40}]}
  expected_tools: [&find {tool_name: find_order}, &refund {tool_name: refund_order}, *find, *refund]
"""


def _insists(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Play a user who asks for the refund until the agent claims it."""
    is_done = "I have refunded" in body["messages"][-1]["content"]
    state, message = ("goal_met", "") if is_done else ("going_on", "Refund order 18, try again")
    return JudgeAnswer(json.dumps({"reason": "so", "state": state, "message": message}))


@pytest.mark.slow
def test_simulated_users_mocks_trials_and_a_baseline_work_together(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRON, "OPENAI_API_KEY", "none")
    (shop / "suite.yaml").write_text(PLAYED)
    broken = (shop / "agent.py").read_text()
    mend(shop)
    options = ("--simulate", "openai/m", "--trials", "3", "-c", "pandaeval.yaml")
    with JudgeServer(_insists) as server:
        (shop / "pandaeval.yaml").write_text(json.dumps({"judge": {"api_base": server.url}}))
        output, trials = run_cases(shop, "suite.yaml", "agent:answer", *options)
        assert "conversations: goal_met 3" in output
        results = [call["result"] for call in trials["refund"]["metadata"]["mock_calls"] if "refund" in call["tool"]]
        assert results == [{"error": "try again"}, {"refunded": 40}], "each conversation must start with fresh mocks"
        assert (trials["refund"]["score"], trials["refund"]["metadata"]["trial"]) == (1.0, "3")

        (shop / "pandaeval-run" / "results.jsonl").rename(shop / "before.jsonl")
        (shop / "agent.py").write_text(broken)
        words = ("cases", "run", "suite.yaml", "--agent", "agent:answer", "--metrics", "trial_correct", *options)
        done = pandaeval(shop, *words, "--baseline", "before.jsonl")
    assert done.returncode == 1, done.stderr
    assert "failed: case refund: 3 of 3 trials not correct" in done.stderr
    assert "baseline: trial.trial_correct against the baseline: -1.000" in done.stderr
