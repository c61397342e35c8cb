"""``pandaeval cases run`` with real agents and collector."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pandaeval_lab.replay.result_lines import result_lines
from support.judge import JudgeAnswer, JudgeServer
from support.ports import free_ports
from tests.support.model_server import ModelServer
from tests.support.script import Call, Conversation, Reply

SPANS = """
import json
from opentelemetry import trace

def said(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

def work(tracer, message, tool="refund_order"):
    with tracer.start_as_current_span("invoke_agent shop") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
        agent.set_attribute("gen_ai.input.messages", said("user", message))
        with tracer.start_as_current_span(f"execute_tool {tool}") as call:
            call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool})
            call.set_attributes({"gen_ai.tool.call.arguments": '{"order": 17}', "gen_ai.tool.call.result": "ok"})
        agent.set_attribute("gen_ai.output.messages", said("assistant", "Order 17 is refunded."))
    return "Order 17 is refunded."
"""
FUNCTION = """
import os, time
from pathlib import Path
from opentelemetry import trace
from spans import work

def answer(message, context):
    if message == "crash":
        raise ValueError("no such order")
    if message == "wait" and Path("waits").exists():
        Path("waiting").touch()
        time.sleep(3600)
    return work(trace.get_tracer("shop"), message, os.environ.get("TOOL", "refund_order"))

def searching(message, context):
    return work(trace.get_tracer("shop"), message, "search")
"""
# Does not use pandaeval, only OpenTelemetry's SDK, its exporter and the header traceparent.
SERVER = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.propagate import extract
from opentelemetry.context import attach, detach
from spans import work

exporter = OTLPSpanExporter(endpoint=sys.argv[2] + "/v1/traces")
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=200))
tracer = provider.get_tracer("shop")

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        token = attach(extract(dict(self.headers)))
        while body["message"] == "wait" and Path("waits").exists():
            Path("waiting-" + body["session"].rpartition("/")[2]).touch()
            time.sleep(0.05)
        answer = "" if body["message"] == "mute" else work(tracer, body["message"])
        reply = json.dumps({"answer": answer}).encode()
        detach(token)
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        if not answer:
            Path("muted").touch()

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""
# Does not use pandaeval either: plain Node that writes OTLP itself.
NODE_SERVER = """
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";

const [port, collector] = process.argv.slice(2);
const text = (key, value) => ({ key, value: { stringValue: value } });
const said = (role, content) => JSON.stringify([{ role, parts: [{ type: "text", content }] }]);
const span = (traceId, parentSpanId, name, attributes) => {
  const now = `${BigInt(Date.now()) * 1000000n}`;
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, parentSpanId, name, kind: 1, startTimeUnixNano: now, endTimeUnixNano: now, attributes };
};

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { message } = JSON.parse(Buffer.concat(chunks));
  const [, traceId, parent] = request.headers.traceparent.split("-");
  const agent = span(traceId, parent, "invoke_agent shop", [
    text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", "shop"),
    text("gen_ai.input.messages", said("user", message)),
    text("gen_ai.output.messages", said("assistant", "Order 17 is refunded.")),
  ]);
  const call = span(traceId, agent.spanId, "execute_tool refund_order", [
    text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", "refund_order"),
    text("gen_ai.tool.call.arguments", '{"order": 17}'), text("gen_ai.tool.call.result", "ok"),
  ]);
  const resource = { attributes: [text("service.name", "shop")] };
  const scopeSpans = [{ scope: { name: "shop" }, spans: [agent, call] }];
  await fetch(`${collector}/v1/traces`, {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
  });
  response.end(JSON.stringify({ answer: "Order 17 is refunded." }));
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
"""
REFUND = "{id: refund, inputs: {task: Refund order 17}, expected_tools: [{tool_name: refund_order}]}"
TALK = """{id: talk, interactions: [{input: hello, expected_tools: [{tool_name: refund_order}]},
   {input: again, expected_tools: [{tool_name: refund_order}]}]}"""
CRASH = "{id: crash, inputs: {task: crash}, forbidden_tools: ['delete_*']}"
MUTE = "{id: mute, inputs: {task: mute}, expected_tools: [{tool_name: refund_order}]}"
WAIT = "{id: wait, inputs: {task: wait}, expected_tools: [{tool_name: refund_order}]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("spans.py", SPANS), ("shop.py", FUNCTION), ("server.py", SERVER), ("server.mjs", NODE_SERVER)):
        (tmp_path / name).write_text(text)
    return tmp_path


def _suite(folder: Path, *cases: str) -> None:
    (folder / "suite.yaml").write_text("cases:\n" + "".join(f"- {case}\n" for case in cases))


def _command(folder: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_", "GITHUB"))}
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            # Tests that run in the background ignore an interrupt.
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "from pandaeval_collector.cli import main; main()",
            "cases",
            "run",
            "suite.yaml",
            *options,
        ],
        cwd=folder,
        env={**environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(folder: Path, *options: str, **variables: str) -> tuple[int, str, str]:
    with _command(folder, *options, **variables) as process:
        out, errors = process.communicate(timeout=240)
        return process.returncode, out, errors


def _correct(folder: Path) -> dict[tuple[str, str], Any]:
    results = result_lines(folder / "pandaeval-run" / "results.jsonl")
    correct = (each for each in results if each["metric"] == "trial_correct")
    return {(each["metadata"]["case"], each["metadata"]["trial"]): each["score"] for each in correct}


@pytest.mark.slow
def test_a_function_agent_runs_every_case_and_its_spans_are_graded(folder: Path) -> None:
    _suite(folder, REFUND, TALK, CRASH)
    code, out, errors = _run(folder, "--agent", "shop:answer", "--trials", "2", "--metrics", "trial_correct")
    assert code == 1, errors
    assert "failed: case crash: 2 of 2 trials not correct: " in errors
    right = {(case, trial): 1.0 for case in ("refund", "talk") for trial in "12"}
    assert _correct(folder) == {**right, ("crash", "1"): 0.0, ("crash", "2"): 0.0}
    assert "notice: the agent failed in 2 attempts; crash, trial 1: ValueError: no such order" in errors
    assert "refund" in out
    cases = ElementTree.parse(folder / "pandaeval-run" / "cases.xml").iter("testcase")
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    assert failed
    assert all("crash" in (name or "") for name in failed)
    assert "<html" in (folder / "pandaeval-run" / "report.html").read_text()

    # The next run has only the failed case.
    code, _, errors = _run(folder, "--agent", "shop:answer", "--only", "crash", "--metrics", "trial_correct")
    assert code == 1, errors
    assert _correct(folder) == {("crash", "1"): 0.0}


def _failures(folder: Path) -> int:
    root = ElementTree.parse(folder / "pandaeval-run" / "cases.xml").getroot()
    return int(root.get("failures", "-1"))


@pytest.mark.parametrize(
    ("kind", "options", "code", "failures"),
    [
        ("regression", (), 1, 1),
        pytest.param("regression", ("--no-fail",), 0, 0, marks=pytest.mark.slow),
        ("capability", (), 0, 0),
    ],
)
def test_exit_code_junit_and_annotation_of_a_failing_case_agree(
    folder: Path, kind: str, options: Sequence[str], code: int, failures: int
) -> None:
    _suite(folder, REFUND, f"{{id: crash, kind: {kind}, inputs: {{task: crash}}, forbidden_tools: ['delete_*']}}")
    github = {"GITHUB_ACTIONS": "true"}
    asked = ("--agent", "shop:answer", "--metrics", "trial_correct", *options)
    ended, _, errors = _run(folder, *asked, **github)
    assert ended == code, errors
    assert _failures(folder) == failures
    assert ("::error title=pandaeval::case crash: 1 of 1 trial not correct" in errors) == bool(code)
    assert ("(--no-fail: this does not fail the run)" in errors) == (options != ())


@pytest.mark.parametrize(
    ("kind", "options", "code"),
    [
        ("regression", (), 1),
        ("regression", ("--no-fail",), 0),
        pytest.param("capability", (), 0, marks=pytest.mark.slow),
    ],
)
def test_a_regression_case_with_an_unscored_grader_fails_the_run(
    folder: Path, kind: str, options: Sequence[str], code: int
) -> None:
    (folder / "silent.py").write_text("def answer(message, context):\n    return 'done'\n")
    graders = "expected_tools: [{tool_name: refund_order}], output_format: {type: text}"
    _suite(folder, f"{{id: silent, kind: {kind}, inputs: {{task: Refund order 17}}, {graders}}}")
    ended, _, errors = _run(folder, "--agent", "silent:answer", "--metrics", "trial_correct", *options)
    assert ended == code, errors
    assert _failures(folder) == code
    cause = "none of 1 trial is correct, and a grader has no score: tool_correctness: the agent sent no spans"
    assert (f"failed: case silent: {cause}" in errors) == bool(code)
    assert ("(--no-fail: this does not fail the run)" in errors) == (options != ())


def test_a_run_without_a_successful_attempt_fails_even_with_no_fail(folder: Path) -> None:
    _suite(folder, "{id: crash, kind: capability, inputs: {task: crash}, forbidden_tools: ['delete_*']}")
    code, _, errors = _run(folder, "--agent", "shop:answer", "--metrics", "trial_correct", "--no-fail")
    assert code == 1, errors
    assert "failed: none of 1 attempt finished: ValueError: no such order" in errors


def test_several_files_run_together_and_verbose_output_shows_conversations(folder: Path) -> None:
    _suite(folder, REFUND, TALK)
    (folder / "suite.yaml").rename(folder / "one.yaml")
    _suite(folder, REFUND.replace("id: refund", "id: second"))
    metrics = ("--metrics", "trial_correct", "--trials", "2", "--only", "*o*", "--only", "talk")
    code, out, errors = _run(folder, "*.yaml", "--agent", "shop:answer", "-v", *metrics)
    assert code == 0, errors
    assert 'agent called refund_order: {"order": 17}\nresult: ok' in out
    assert "agent: Order 17 is refunded." in out


@pytest.mark.slow
def test_a_run_of_a_worse_agent_with_a_baseline_fails(folder: Path) -> None:
    cases = (REFUND.replace("id: refund", f"id: refund-{each}, kind: capability") for each in range(6))
    _suite(folder, *cases)
    options = ("--agent", "shop:answer", "--metrics", "trial_correct", "--concurrency", "2", "--trials", "3")
    code, _, errors = _run(folder, *options)
    assert code == 0, errors
    before = (folder / "pandaeval-run" / "results.jsonl").rename(folder / "before.jsonl")
    code, _, errors = _run(folder, *options, TOOL="search")
    assert code == 0, errors
    code, _, errors = _run(folder, *options, "--baseline", str(before), TOOL="search")
    assert code == 1, errors
    assert "failed: the drop of 1.000 is more than chance explains" in errors
    assert set(_correct(folder).values()) == {0.0}


PYTHON, NODE = (sys.executable, "server.py"), ("node", "server.mjs")


@contextmanager
def _served(folder: Path, command: Sequence[str] = PYTHON) -> Iterator[tuple[str, ...]]:
    port, grpc, http = free_ports(3)
    server = {"grpc": f"127.0.0.1:{grpc}", "http": f"127.0.0.1:{http}"}
    (folder / "pandaeval.yaml").write_text(json.dumps({"server": server, "close": {"quiet": "1s"}}))
    words = [*command, str(port), f"http://127.0.0.1:{http}"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield "--agent", f"http://127.0.0.1:{port}/talk", "-c", "pandaeval.yaml", "--metrics", "trial_correct"
        process.kill()


no_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("command", [PYTHON, pytest.param(NODE, marks=no_node)])
def test_an_agent_in_another_process_is_graded_by_its_own_spans(folder: Path, command: Sequence[str]) -> None:
    _suite(folder, REFUND, TALK)
    with _served(folder, command) as options:
        code, _, errors = _run(folder, *options)
    assert code == 0, errors
    assert _correct(folder) == {("refund", "1"): 1.0, ("talk", "1"): 1.0}


LANGGRAPH = """
import os
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

def refund_order(order: int) -> str:
    "Pays the money for an order back."
    return "ok"

LangChainInstrumentor().instrument()
model = init_chat_model("gpt-4o-mini", model_provider="openai", base_url=os.environ["MODEL"], api_key="none")
agent = create_agent(model, tools=[refund_order], name="shop", checkpointer=InMemorySaver())

def answer(message, context):
    said = {"messages": [{"role": "user", "content": message}]}
    state = agent.invoke(said, {"configurable": {"thread_id": context.session}})
    return state["messages"][-1].content
"""


def _refunds(conversation: Conversation) -> Reply:
    if conversation.messages[-1].role == "tool":
        return Reply("Order 17 is refunded.")
    return Reply(calls=(Call("refund_order", {"order": 17}),))


@pytest.mark.slow
def test_a_langgraph_agent_is_graded_by_the_spans_of_its_instrumentation(folder: Path) -> None:
    for module in ("langgraph", "langchain_openai", "opentelemetry.instrumentation.genai.langchain"):
        pytest.importorskip(module)
    _suite(folder, REFUND, TALK)
    (folder / "graph.py").write_text(LANGGRAPH)
    capture = {
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "LANGSMITH_TRACING": "false",
    }
    with ModelServer({"shop": _refunds}) as model:
        options = ("--agent", "graph:answer", "--metrics", "trial_correct")
        code, _, errors = _run(folder, *options, MODEL=model.url("shop"), **capture)
    assert code == 0, errors
    assert _correct(folder) == {("refund", "1"): 1.0, ("talk", "1"): 1.0}


@pytest.mark.slow
def test_a_run_after_a_killed_run_counts_no_trace_twice(folder: Path) -> None:
    """The agent of the killed run finishes later."""
    _suite(folder, REFUND, WAIT)
    with _served(folder) as options:
        assert _run(folder, *options)[0] == 0
        (folder / "waits").touch()
        for turns, is_killed in ((1, True), (2, False)):
            with _command(folder, *options) as process:
                while len([*folder.glob("waiting-*")]) < turns:
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.05)
                if is_killed:
                    process.kill()
                    process.communicate()
                    assert _correct(folder) == {("refund", "1"): 1.0, ("wait", "1"): 1.0}, "those of the last full run"
                    continue
                (folder / "waits").unlink()
                _, errors = process.communicate(timeout=240)
                assert process.returncode == 0, errors
    assert _correct(folder) == {("refund", "1"): 1.0, ("wait", "1"): 1.0}
    traces = [each["metadata"]["traces"] for each in result_lines(folder / "pandaeval-run" / "results.jsonl")]
    assert [len(each) for each in traces] == [1, 1]


@pytest.mark.slow
def test_ctrl_c_grades_finished_attempts(folder: Path) -> None:
    _suite(folder, REFUND, WAIT)
    (folder / "waits").touch()
    with _command(folder, "--agent", "shop:answer", "--concurrency", "1", "--metrics", "trial_correct") as process:
        while not (folder / "waiting").exists():
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "notice: interrupted; 1 of 2 attempts had finished" in errors
    assert _correct(folder) == {("refund", "1"): 1.0}


@pytest.mark.slow
def test_ctrl_c_during_the_wait_for_spans_grades_attempts_with_spans(folder: Path) -> None:
    _suite(folder, REFUND, MUTE)
    with _served(folder) as options, _command(folder, *options, "--wait", "1h", "--concurrency", "1") as process:
        while not (folder / "muted").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(3)  # both attempts have ended, and the second never sends spans
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "notice: interrupted; 2 of 2 attempts had finished" in errors
    assert _correct(folder) == {("refund", "1"): 1.0}


@pytest.mark.slow
def test_exit_code_is_2_with_advice_if_the_agent_sends_no_spans(folder: Path) -> None:
    _suite(folder, REFUND)
    (folder / "mute.py").write_text("def answer(message, context):\n    return 'done'\n")
    code, _, errors = _run(folder, "--agent", "mute:answer")
    assert code == 2
    assert "no spans of the agent arrived for 1 of 1 attempt: instrument it" in errors


SCENARIO = """{id: talk, expected_outcome: {tools_called: [refund_order]}, scenario: {
   goal: Get the money for order 17 back, profile: Short of time, knowledge: [the order is 17], conversations: 2}}"""


def _plays_a_user(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Ask once; invent an order in the second conversation."""
    words = [str(message["content"]) for message in body["messages"]]
    if "This is conversation 2" in words[0]:
        return JudgeAnswer(json.dumps({"reason": "begin", "state": "going_on", "message": "Money back for A-1733"}))
    if len(words) == 2:
        return JudgeAnswer(json.dumps({"reason": "begin", "state": "going_on", "message": "Money back for order 17"}))
    assert words[-1] == "Order 17 is refunded."
    return JudgeAnswer(json.dumps({"reason": "refunded", "state": "goal_met", "message": ""}))


OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalSpanProcessor
from shop import answer

provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor())
trace.set_tracer_provider(provider)
"""


@pytest.mark.slow
def test_conversations_that_the_simulated_user_breaks_get_no_score(folder: Path) -> None:
    """The agent's own collector receives no spans."""
    _suite(folder, SCENARIO)
    (folder / "own.py").write_text(OWN)
    with JudgeServer(_plays_a_user) as server, socket.create_server(("127.0.0.1", 0)) as live:
        judge = {"api_base": server.url, "api_key_env": "JUDGE_KEY", "parameters": {"temperature": 0.4}}
        (folder / "pandaeval.yaml").write_text(json.dumps({"judge": judge}))
        options = ("--simulate", "openai/gpt-4o-mini", "--seed", "7", "-c", "pandaeval.yaml")
        variables = {"JUDGE_KEY": "sk-test", "PANDAEVAL_ENDPOINT": f"127.0.0.1:{live.getsockname()[1]}"}
        code, _, errors = _run(folder, "--agent", "own:answer", *options, **variables)
        sent = [body for _, body in server.requests]
        live.setblocking(False)
        with pytest.raises(BlockingIOError):
            live.accept()
    assert code == 0, errors
    assert _correct(folder) == {("talk", "1"): 1.0, ("talk", "2"): None}
    assert {(body["temperature"], body["seed"]) for body in sent} == {(0.4, 7)}
    assert "simulated user: openai/gpt-4o-mini, temperature 0.4, seed 7: 4 calls" in errors
    assert "conversations: goal_met 1, spoilt 1" in errors
    assert "A-1733: the user cannot know that" in errors
    assert "the agent failed" not in errors
    results = [*result_lines(folder / "pandaeval-run" / "results.jsonl")]
    spoilt = [each for each in results if each["metadata"].get("trial") == "2"]
    assert {each["metric"] for each in spoilt} >= {"trial_correct", "tool_correctness"}
    assert {(each["level"], each["why"]) for each in spoilt} == {("trial", "simulator_failed")}
    assert not [each["metric"] for each in results if each["success"] is False], "no result blames the agent"
    whole = (folder / "pandaeval-run" / "traces.pb").read_bytes()
    assert whole.count(b"pandaeval.simulated") >= 2, "each turn must be marked as simulated"
