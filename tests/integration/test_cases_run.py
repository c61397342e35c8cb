"""``pandaeval cases run``: real agents with spans of their own, in the command's process and elsewhere, and the real
collector that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pandaeval_lab.replay.files import result_lines
from support.judge import JudgeServer, Say
from support.ports import free_ports

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
"""
# Knows nothing of pandaeval: OpenTelemetry's SDK, its exporter and the header traceparent.
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
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
        reply = json.dumps({"answer": work(tracer, body["message"])}).encode()
        detach(token)
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""
REFUND = "{id: refund, inputs: {task: Refund order 17}, expected_tools: [{tool_name: refund_order}]}"
TALK = """{id: talk, interactions: [{input: hello, expected_tools: [{tool_name: refund_order}]},
   {input: again, expected_tools: [{tool_name: refund_order}]}]}"""
CRASH = "{id: crash, inputs: {task: crash}, forbidden_tools: ['delete_*']}"
WAIT = "{id: wait, inputs: {task: wait}, expected_tools: [{tool_name: refund_order}]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("spans.py", SPANS), ("shop.py", FUNCTION), ("server.py", SERVER)):
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
    """Whether each trial is correct, by case and trial."""
    results = result_lines(folder / "pandaeval-run" / "results.jsonl")
    correct = (each for each in results if each["metric"] == "trial_correct")
    return {(each["metadata"]["case"], each["metadata"]["trial"]): each["score"] for each in correct}


@pytest.mark.slow
def test_a_function_tries_every_case_and_its_spans_are_graded(folder: Path) -> None:
    _suite(folder, REFUND, TALK, CRASH)
    code, out, errors = _run(folder, "--agent", "shop:answer", "--trials", "2", "--metrics", "trial_correct")
    assert code == 0, errors
    right = {(case, trial): 1.0 for case in ("refund", "talk") for trial in "12"}
    assert _correct(folder) == {**right, ("crash", "1"): 0.0, ("crash", "2"): 0.0}
    assert "notice: the agent failed in 2 attempts; crash, trial 1: ValueError: no such order" in errors
    assert "refund" in out
    cases = ElementTree.parse(folder / "pandaeval-run" / "cases.xml").iter("testcase")
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    assert failed
    assert all("crash" in (name or "") for name in failed)
    assert "<html" in (folder / "pandaeval-run" / "report.html").read_text()

    # The next run: only what failed; then the whole suite against this one as its baseline.
    code, _, errors = _run(folder, "--agent", "shop:answer", "--failed", "--metrics", "trial_correct")
    assert code == 0, errors
    assert _correct(folder) == {("crash", "1"): 0.0}


@pytest.mark.slow
def test_a_worse_agent_fails_against_its_baseline(folder: Path) -> None:
    _suite(folder, *(REFUND.replace("id: refund", f"id: refund-{each}") for each in range(6)))
    options = ("--agent", "shop:answer", "--metrics", "trial_correct", "--concurrency", "2")
    code, _, errors = _run(folder, *options, "--trials", "3")
    assert code == 0, errors
    before = (folder / "pandaeval-run" / "results.jsonl").rename(folder / "before.jsonl")
    code, _, errors = _run(folder, *options, "--trials", "3", "--baseline", str(before), TOOL="search")
    assert code == 1, errors
    assert "failed:" in errors
    assert set(_correct(folder).values()) == {0.0}


@contextmanager
def _served(folder: Path, port: int, collector: int) -> Iterator[None]:
    command: Sequence[str] = [sys.executable, "server.py", str(port), f"http://127.0.0.1:{collector}"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        process.kill()


@pytest.mark.slow
def test_an_agent_in_another_process_is_graded_by_its_own_spans(folder: Path) -> None:
    _suite(folder, REFUND, TALK)
    port, grpc, http = free_ports(3)
    server = {"grpc": f"127.0.0.1:{grpc}", "http": f"127.0.0.1:{http}"}
    (folder / "pandaeval.yaml").write_text(json.dumps({"server": server, "close": {"quiet": "1s"}}))
    with _served(folder, port, http):
        address = f"http://127.0.0.1:{port}/talk"
        code, _, errors = _run(folder, "--agent", address, "-c", "pandaeval.yaml", "--metrics", "trial_correct")
    assert code == 0, errors
    assert _correct(folder) == {("refund", "1"): 1.0, ("talk", "1"): 1.0}


@pytest.mark.slow
def test_ctrl_c_grades_what_has_ended(folder: Path) -> None:
    _suite(folder, REFUND, WAIT)
    (folder / "waits").touch()
    with _command(folder, "--agent", "shop:answer", "--concurrency", "1", "--metrics", "trial_correct") as process:
        while not (folder / "waiting").exists():
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "notice: interrupted; 1 of 2 attempts had ended" in errors
    assert _correct(folder) == {("refund", "1"): 1.0}


@pytest.mark.slow
def test_an_agent_without_spans_ends_the_command_with_the_cure(folder: Path) -> None:
    _suite(folder, REFUND)
    (folder / "mute.py").write_text("def answer(message, context):\n    return 'done'\n")
    code, _, errors = _run(folder, "--agent", "mute:answer")
    assert code == 2
    assert "no spans of the agent came for 1 of 1 attempt: instrument it" in errors


SCENARIO = """{id: talk, expected_outcome: {tools_called: [refund_order]}, scenario: {
   goal: Get the money for order 17 back, profile: Short of time, knowledge: [the order is 17], conversations: 2}}"""


def _plays_a_user(number: int, body: dict[str, Any]) -> Say:
    """Asks once and is content; in its second conversation it makes up an order, and does not mend it."""
    words = [str(message["content"]) for message in body["messages"]]
    if "This is conversation 2" in words[0]:
        return Say(json.dumps({"reason": "begin", "state": "going_on", "message": "Money back for A-1733"}))
    if len(words) == 2:
        return Say(json.dumps({"reason": "begin", "state": "going_on", "message": "Money back for order 17"}))
    assert words[-1] == "Order 17 is refunded."
    return Say(json.dumps({"reason": "refunded", "state": "goal_met", "message": ""}))


@pytest.mark.slow
def test_a_model_plays_the_user_and_what_it_spoils_has_no_score(folder: Path) -> None:
    _suite(folder, SCENARIO)
    with JudgeServer(_plays_a_user) as server:
        judge = {"api_base": server.url, "api_key_env": "JUDGE_KEY"}
        (folder / "pandaeval.yaml").write_text(json.dumps({"judge": judge}))
        options = ("--simulate", "openai/gpt-4o-mini", "--temperature", "0.4", "--seed", "7", "-c", "pandaeval.yaml")
        code, _, errors = _run(folder, "--agent", "shop:answer", *options, JUDGE_KEY="sk-test")
        sent = [body for _, body in server.requests]
    assert code == 0, errors
    assert _correct(folder) == {("talk", "1"): 1.0, ("talk", "2"): None}
    assert {(body["temperature"], body["seed"]) for body in sent} == {(0.4, 7)}
    assert "simulated user: openai/gpt-4o-mini, temperature 0.4, seed 7: 4 calls" in errors
    assert "A-1733: the user cannot know that" in errors
    assert "the agent failed" not in errors
    results = [*result_lines(folder / "pandaeval-run" / "results.jsonl")]
    spoilt = [each for each in results if (each["metadata"] or {}).get("simulator_failed")]
    assert {each["metric"] for each in spoilt} >= {"trial_correct", "tool_correctness"}
    assert {each["outcome"] for each in spoilt} == {"unscored"}
    assert not [each["metric"] for each in results if each["success"] is False], "nothing is the agent's failure"
