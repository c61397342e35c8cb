"""Mocked tools in process, over MCP and HTTP; from a failure to a passing case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import yaml
from mcp import Client, StdioServerParameters

from pandaeval_lab.replay.result_lines import result_lines
from support.collector import CollectorProcess
from support.judge import JudgeServer, Say
from support.ports import free_ports
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
    """Change the agent as its first lines describe."""
    text = (shop / "agent.py").read_text()
    mended = text.replace('# if "error"', 'if "error"').replace(
        "what is asked for.", "what is asked for. Say what failed."
    )
    assert mended != text
    (shop / "agent.py").write_text(mended)


@pytest.mark.slow
def test_the_suite_of_init_passes_in_two_of_three_cases_until_the_agent_is_mended(shop: Path) -> None:
    told, trials = run_cases(shop, "suite.yaml")
    scores = {case: each["score"] for case, each in trials.items()}
    assert scores == {"where-is-my-order": 1.0, "refund": 1.0, "refund-that-fails": 0.0}
    calls = trials["refund-that-fails"]["metadata"]["mock_calls"]
    assert [(call["tool"], call["arguments"], call["kind"]) for call in calls] == [
        ("find_order", {"order": 19}, "result"),
        ("refund_order", {"order": 19}, "error"),
    ]
    assert "no mock fitted" not in told
    assert "no mock was asked" not in told
    tests = ElementTree.parse(shop / "pandaeval-run" / "cases.xml").iter("testcase")
    assert all('"tool": "find_order"' in (test.findtext("system-out") or "") for test in tests)
    mend(shop)
    assert {each["score"] for each in run_cases(shop, "suite.yaml")[1].values()} == {1.0}


@pytest.mark.slow
def test_calls_that_no_mock_fits_and_calls_past_the_mocks_are_told(shop: Path) -> None:
    agent = (shop / "agent.py").read_text()
    (shop / "agent.py").write_text(agent.replace("@mocked\ndef find_order", "def find_order"))
    suite = yaml.safe_load((shop / "suite.yaml").read_text())
    suite["cases"] = [{**suite["cases"][1], "mocks": {"refund_order": {"when": {"order": 99}, "result": 1}}}]
    (shop / "suite.yaml").write_text(yaml.safe_dump(suite))
    told, trials = run_cases(shop, "suite.yaml")
    assert "notice: refund: no mock fits the expected calls of find_order, refund_order" in told
    assert "notice: no mock matched, so the call was refused: add a result to mocks (refund_order 1×)" in told
    assert "notice: the tool itself answered: wrap it with mocked (find_order 1×)" in told
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
def test_a_failure_in_production_becomes_a_case_that_fails_until_the_agent_is_mended(
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
        made = pandaeval(shop, "cases", "from-failure", incidents[0]["id"], "--url", collector.http, "-o", "case.yaml")
        assert made.returncode == 0, made.stderr
        _goes_green(shop)


def _goes_green(shop: Path) -> None:
    # The tools' results are recorded; the case demands that the finding is absent.
    suite = yaml.safe_load((shop / "case.yaml").read_text())
    (case,) = suite["cases"]
    assert case["unmocked"] == "recorded"
    assert [(each["metric"], each["label"]) for each in case["absent"]] == [("trace.response", "false_success")]
    assert "open" not in case
    # The world of that day is gone.
    agent = (shop / "agent.py").read_text()
    (shop / "agent.py").write_text(agent.replace('"status": "delivered"', '"status": 1 / 0'))

    told, trials = run_cases(shop, "case.yaml")
    assert trials[case["id"]]["score"] == 0.0, told
    mend(shop)
    told, trials = run_cases(shop, "case.yaml")
    assert trials[case["id"]]["score"] == 1.0, told
    assert [call["kind"] for call in trials[case["id"]]["metadata"]["mock_calls"]] == ["result", "result"]
    assert "no mock was asked" not in told


SUITE = """
cases:
- id: pay
  inputs: {task: Pay}
  tool_schemas: {pay: {type: object, properties: {order: {type: integer}}, required: [order]}}
  mocks:
    pay: [{error: try again, times: 1}, {when: {order: 17}, results: [{paid: 40}, paid before]}]
- id: free
  inputs: {task: Free}
  unmocked: pass
  mocks: {pay: {when: {order: 1}, result: nothing to pay}}
"""


@asynccontextmanager
async def offered(folder: Path, case: str) -> AsyncIterator[Client]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    arguments = [*MAIN[1:], "cases", "mcp", str(folder / "suite.yaml"), "--case", case]
    server = StdioServerParameters(command=MAIN[0], args=arguments, env={"PYTHONPATH": path})
    async with Client(server, read_timeout_seconds=120) as client:
        yield client


@pytest.mark.slow
async def test_mocks_answer_over_mcp(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    async with offered(tmp_path, "pay") as client:
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.input_schema["required"]) == ("pay", ["order"])
        said = [await client.call_tool("pay", {"order": order}) for order in (17, 17, 17, 18)]
    texts = ["".join(part.text for part in each.content if part.type == "text") for each in said]
    assert texts[:3] == ["try again", '{"paid": 40}', "paid before"]
    assert texts[3].startswith('pay: no mock of case pay fits {"order": 18}')
    assert [each.is_error for each in said] == [True, False, False, True]


@contextmanager
def stubbed(folder: Path, *options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    words = [*MAIN, "cases", "stub", "suite.yaml", "--port", "0", *options]
    environ = {**ENVIRON, **variables}
    with subprocess.Popen(words, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().partition("/TOOL")[0], process
        finally:
            process.terminate()


@pytest.mark.slow
def test_mocks_answer_over_http_by_the_case_that_baggage_names(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    with stubbed(tmp_path, "--case", "pay") as (url, process), httpx.Client(trust_env=False, timeout=60) as client:

        def call(content: str, case: str = "", session: str = "", tool: str = "pay") -> tuple[int, Any]:
            baggage = {"baggage": f"pandaeval.case.id={case},pandaeval.session.id={session}"} if case else {}
            reply = client.post(f"{url}/{tool}", content=content, headers={**baggage, **JSON})
            return reply.status_code, reply.json()

        assert [call('{"order": 17}') for _ in range(3)] == [
            (500, {"error": "try again"}),
            (200, {"paid": 40}),
            (200, "paid before"),
        ]
        assert call('{"order": 17}', "pay", "another-attempt") == (500, {"error": "try again"})
        assert call('{"order": 1}', "free") == (200, "nothing to pay")
        assert call('{"order": 2}', "free")[0] == 404, "there is no tool to pass it to"
        assert call("{}", "nobody") == (404, {"error": "pay: there is no case nobody"})
        assert call("[]") == call("{") == (400, {"error": "send the arguments as a JSON object"})
        assert call("{}", tool="fly")[0] == 404
        assert client.get(f"{url}/pay").status_code == 405
        process.terminate()
        assert process.stderr is not None
        printed = [json.loads(line) for line in process.stderr]
    assert printed[1] == {"tool": "pay", "arguments": {"order": 17}, "kind": "result", "result": {"paid": 40}}


PLAYED = """
cases:
- id: refund
  scenario:
    goal: Get the money back
    knowledge: [the order is 18]
    first_message: Refund order 18
    thresholds: {trial_correct: 1}
  mocks:
    find_order: {result: {status: delivered}}
    refund_order: {results: [{error: try again}, {refunded: 40}]}
  expected_tools: [&find {tool_name: find_order}, &refund {tool_name: refund_order}, *find, *refund]
"""


def _insists(number: int, body: dict[str, Any]) -> Say:
    """Play a user who asks for the refund until the agent claims it."""
    is_done = "I have refunded" in body["messages"][-1]["content"]
    state, message = ("goal_met", "") if is_done else ("going_on", "Refund order 18, try again")
    return Say(json.dumps({"reason": "so", "state": state, "message": message}))


@pytest.mark.slow
def test_simulated_users_mocks_trials_thresholds_and_a_baseline_go_together(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRON, "OPENAI_API_KEY", "none")
    (shop / "suite.yaml").write_text(PLAYED)
    broken = (shop / "agent.py").read_text()
    mend(shop)
    options = ("--simulate", "openai/m", "--trials", "3", "-c", "pandaeval.yaml")
    with JudgeServer(_insists) as server:
        (shop / "pandaeval.yaml").write_text(json.dumps({"judge": {"api_base": server.url}}))
        told, trials = run_cases(shop, "suite.yaml", "agent:answer", *options)
        assert "conversations: goal_met 3" in told
        results = [call["result"] for call in trials["refund"]["metadata"]["mock_calls"] if "refund" in call["tool"]]
        assert results == [{"error": "try again"}, {"refunded": 40}], "each conversation begins anew"
        assert (trials["refund"]["score"], trials["refund"]["metadata"]["trial"]) == (1.0, "3")

        (shop / "pandaeval-run" / "results.jsonl").rename(shop / "before.jsonl")
        (shop / "agent.py").write_text(broken)
        words = ("cases", "run", "suite.yaml", "--agent", "agent:answer", "--metrics", "trial_correct", *options)
        done = pandaeval(shop, *words, "--baseline", "before.jsonl")
    assert done.returncode == 1, done.stderr
    assert "failed: scenario refund: trial.trial_correct (threshold 1): the mean of 3 scores is 0.0000" in done.stderr
    assert "baseline: trial.trial_correct against the baseline: -1.000" in done.stderr


# Knows nothing of pandaeval: it passes the headers of its requests on to its tools, as instrumented clients do. Its
# spans come after the trace of a turn has closed, those of the stub at once.
AGENT = """
import json, sys, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
exporter = OTLPSpanExporter(endpoint=sys.argv[2] + "/v1/traces")
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=4000))
tracer = provider.get_tracer("shop")

def text(role, content):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])

def pay(order):
    with tracer.start_as_current_span("execute_tool pay") as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"})
        span.set_attribute("gen_ai.tool.call.arguments", json.dumps({"order": order}))
        headers = {"content-type": "application/json"}
        inject(headers)
        body = json.dumps({"order": order}).encode()
        try:
            answer = urllib.request.urlopen(urllib.request.Request(sys.argv[3] + "/pay", body, headers)).read()
        except urllib.error.HTTPError as error:
            answer = error.read()
        span.set_attribute("gen_ai.tool.call.result", answer.decode())
        return json.loads(answer)

def work(message):
    with tracer.start_as_current_span("invoke_agent shop") as span:
        span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
        span.set_attribute("gen_ai.input.messages", text("user", message))
        paid = pay(17)
        paid = pay(17) if "error" in paid else paid
        span.set_attribute("gen_ai.output.messages", text("assistant", f"Paid: {paid}"))
        return f"Paid: {paid}"

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        token = attach(extract(dict(self.headers)))
        reply = json.dumps({"answer": work(body["message"])}).encode()
        detach(token)
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.mark.slow
def test_what_the_stub_answered_to_an_agent_elsewhere_stands_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "suite.yaml").write_text(
        SUITE.replace("{task: Pay}", "{task: Pay}\n  expected_tools: [{name: pay}, {name: pay}]")
    )
    port, grpc, http = free_ports(3)
    server = {"grpc": f"127.0.0.1:{grpc}", "http": f"127.0.0.1:{http}"}
    (tmp_path / "pandaeval.yaml").write_text(json.dumps({"server": server, "close": {"quiet": "1s"}}))
    with stubbed(tmp_path, PANDAEVAL_ENDPOINT=server["grpc"]) as (url, _):
        words = [sys.executable, "agent.py", str(port), f"http://{server['http']}", url]
        with subprocess.Popen(words, cwd=tmp_path, env=ENVIRON, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "ready\n"
            told, trials = run_cases(
                tmp_path,
                "suite.yaml",
                f"http://127.0.0.1:{port}",
                *["--trials", "2", "--only", "pay", "-c", "pandaeval.yaml"],
            )
            agent.kill()
    assert trials["pay"]["score"] == 1.0, told
    assert [(call["kind"], call["arguments"]) for call in trials["pay"]["metadata"]["mock_calls"]] == [
        ("error", {"order": 17}),
        ("result", {"order": 17}),
    ]
    assert "no mock was asked" not in told
