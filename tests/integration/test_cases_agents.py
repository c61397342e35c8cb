"""``pandaeval cases run`` with many kinds of agents, each with its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from pandaeval_lab.replay.result_lines import result_lines
from support.ports import free_ports

ANSWER = "Order 17 is refunded."
# Only the agents `refunds` and `arefunds` have instrumentation.
FUNCTIONS = """
import json, os, sys, time
from opentelemetry import trace
from pandaeval_lab import mocked

ANSWER = "Order 17 is refunded."

def said(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

@mocked
def refund_order(order: int) -> str:
    raise AssertionError("the shop is closed")

def refunds(message):
    tracer = trace.get_tracer("shop")
    with tracer.start_as_current_span("invoke_agent shop") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": said("user", message)})
        with tracer.start_as_current_span("execute_tool") as call:
            result = refund_order(17)
            call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund_order"})
            call.set_attributes({"gen_ai.tool.call.arguments": '{"order": 17}', "gen_ai.tool.call.result": result})
        agent.set_attribute("gen_ai.output.messages", said("assistant", ANSWER))
    return ANSWER

async def arefunds(message):
    return refunds(message)

def silent(message):
    return ANSWER

def asks(messages):
    if messages[-1]["role"] == "tool":
        return ANSWER
    return {"tool_calls": [{"id": "c1", "function": {"name": "refund_order", "arguments": {"order": 17}}}]}

def raises(message):
    raise ValueError("no such order")

def hangs(message):
    time.sleep(3600)

def exits(message):
    sys.exit(0)

def shouts(message):
    return "x" * 50_000_000

def prints(message):
    print("x" * 50_000_000, file=sys.stderr)
    return refunds(message)
"""
CASE = {
    "id": "refund",
    "inputs": {"task": "Refund order 17"},
    "mocks": {"refund_order": {"when": {"order": 17}, "result": "ok"}},
    "output_format": {"contains": ["refunded"]},
}
CALLS = {"expected_tools": [{"tool_name": "refund_order", "parameters": {"order": 17}}]}
Respond = Callable[["_Handler", dict[str, Any]], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    respond: Respond
    otlp = ""

    def spans(self, headers: Mapping[str, str], delay_s: float = 0.0) -> None:
        """Send an agent's spans after a delay, as an instrumented server does."""
        time.sleep(delay_s)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{self.otlp}/v1/traces")))
        tracer, token = provider.get_tracer("shop"), context.attach(extract(dict(headers)))
        with tracer.start_as_current_span("invoke_agent") as agent:
            for role, name, text in (("user", "input", "Refund order 17"), ("assistant", "output", ANSWER)):
                messages = [{"role": role, "parts": [{"type": "text", "content": text}]}]
                agent.set_attribute(f"gen_ai.{name}.messages", json.dumps(messages))
            agent.set_attribute("gen_ai.operation.name", "invoke_agent")
            with tracer.start_as_current_span("execute_tool") as call:
                call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund_order"})
                call.set_attributes({"gen_ai.tool.call.arguments": '{"order": 17}', "gen_ai.tool.call.result": "ok"})
        context.detach(token)
        provider.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        self.server.respond(self, json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def reply(self, body: Any, kind: str = "application/json", status: int = 200) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def _served(respond: Respond, otlp: str) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.respond, server.otlp = respond, otlp  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _plain(handler: _Handler, body: dict[str, Any]) -> None:
    handler.reply({"answer": ANSWER})


def _with_spans(handler: _Handler, body: dict[str, Any]) -> None:
    handler.server.spans(handler.headers)
    handler.reply({"answer": ANSWER})


def _with_late_spans(handler: _Handler, body: dict[str, Any]) -> None:
    handler.reply({"answer": ANSWER})
    handler.server.spans(handler.headers, 4.0)


def _asks_for_tools(handler: _Handler, body: dict[str, Any]) -> None:
    last = body["messages"][-1]
    if last["role"] != "tool":
        handler.reply({"tool_calls": [{"id": "c1", "name": "refund_order", "arguments": {"order": 17}}]})
        return
    assert (last["tool_call_id"], last["content"]) == ("c1", "ok")
    handler.reply({"answer": ANSWER})


def _goes_round(handler: _Handler, body: dict[str, Any]) -> None:
    handler.reply({"tool_calls": [{"name": "refund_order", "arguments": {"order": 17}}]})


def _with_headers(handler: _Handler, body: dict[str, Any]) -> None:
    assert handler.headers["authorization"] == "Bearer s3cret"
    message = {"role": "user", "content": "Refund order 17"}
    assert body == {"query": {"text": "Refund order 17"}, "history": ["begin", message], "from": "case refund"}
    handler.reply({"data": [{"text": ANSWER}]})


def _model(handler: _Handler, body: dict[str, Any]) -> None:
    """Call the tool, then answer with a text."""
    assert handler.path == "/v1/chat/completions"
    assert (body["model"], body["temperature"], body["messages"][0]["role"]) == ("m", 0, "system")
    assert body["tools"][0]["function"]["name"] == "refund_order"
    if body["messages"][-1]["role"] == "tool":
        message: dict[str, Any] = {"content": "Order 17 is refunded."}
    else:
        message = {"tool_calls": [{"id": "c1", "function": {"name": "refund_order", "arguments": '{"order": 17}'}}]}
    handler.reply({"choices": [{"message": message}]})


def _fails(handler: _Handler, body: dict[str, Any]) -> None:
    handler.reply({"detail": "the shop burns"}, status=503)


def _shouts(handler: _Handler, body: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(50):
            handler.wfile.write(b"x" * 1_000_000)
    except OSError:
        handler.close_connection = True  # the client stopped reading


@dataclass(frozen=True)
class Kind:
    """A kind of agent. ``correct``: score of ``trial_correct``; ``tells``: part of stderr."""

    name: str
    code: int
    correct: float | None
    agent: Any
    tells: str = ""
    respond: Respond | None = None
    case: Mapping[str, Any] = field(default_factory=lambda: CALLS)
    options: tuple[str, ...] = ()


URL = "${AGENT}/talk"
QUIET = {"url": URL, "spans": False}
KINDS = (
    Kind("function", 0, 1.0, "shop:refunds"),
    Kind("coroutine function", 0, 1.0, "shop:arefunds"),
    Kind("function without spans", 0, 1.0, "shop:silent", "no spans of the agent arrived for 1 of 1 attempt", case={}),
    Kind("function that returns tool_calls", 0, 1.0, "shop:asks"),
    Kind("HTTP with spans", 0, 1.0, {"url": URL}, respond=_with_spans),
    Kind("HTTP with late spans", 0, 1.0, {"url": URL}, respond=_with_late_spans),
    Kind("HTTP without spans", 0, 1.0, QUIET, respond=_plain, case={}),
    Kind("HTTP without spans, with expected calls", 1, None, QUIET, respond=_plain),
    Kind("HTTP that is silent unexpectedly", 0, 1.0, {"url": URL}, "no spans", _plain, {}, ("--wait", "1s")),
    Kind("HTTP with an error status", 1, 0.0, QUIET, "answered 503: ", _fails),
    Kind("tool_calls", 0, 1.0, QUIET, respond=_asks_for_tools),
    Kind("tool_calls without an end", 1, 0.0, QUIET, "more than 20 replies of a turn called tools", _goes_round),
    Kind(
        "headers, body and place of the answer",
        0,
        1.0,
        {
            **QUIET,
            "headers": {"authorization": "Bearer ${KEY}"},
            "body": {"query": {"text": "{message}"}, "history": ["begin", "{messages}"], "from": "case {case}"},
            "answer": "data.0.text",
        },
        respond=_with_headers,
        case={},
    ),
    Kind(
        "OpenAI-compatible",
        0,
        1.0,
        {
            "url": "${AGENT}/v1/chat/completions",
            "spans": False,
            "body": {
                "model": "m",
                "temperature": 0,
                "messages": [{"role": "system", "content": "A shop."}, "{messages}"],
                "tools": [{"type": "function", "function": {"name": "refund_order"}}],
            },
        },
        respond=_model,
    ),
    Kind("raises", 1, 0.0, "shop:raises", "ValueError: no such order"),
    Kind("hangs", 1, 0.0, "shop:hangs", "the turn took longer than 2 s", options=("--turn-timeout", "2s")),
    Kind("exits", 1, 0.0, "shop:exits", "SystemExit: 0"),
    Kind("50 MB answer", 1, 0.0, "shop:shouts", "the answer has 50,000,000 characters; the limit is 4,194,304"),
    Kind("50 MB over HTTP", 1, 0.0, QUIET, "sent more than 4 MiB", _shouts),
    Kind("50 MB printed", 0, 1.0, "shop:prints"),
)


QUICK = ("tool_calls",)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] * (kind.name not in QUICK)) for kind in KINDS]
)
def test_every_kind_of_agent_gets_its_exit_code_and_score(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    suite = {"agents": {"shop": kind.agent}, "cases": [{**CASE, **kind.case}]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    grpc, http = free_ports(2)
    server = {"grpc": f"127.0.0.1:{grpc}", "http": f"127.0.0.1:{http}"}
    (tmp_path / "pandaeval.yaml").write_text(json.dumps({"server": server, "close": {"quiet": "1s"}}))
    with _served(kind.respond or _plain, f"http://127.0.0.1:{http}") as url:
        done = _run(tmp_path, *kind.options, AGENT=url, KEY="s3cret")
    assert done.returncode == kind.code, done.stderr[-3000:]
    assert kind.tells in done.stderr
    results = [*result_lines(tmp_path / "pandaeval-run" / "results.jsonl")]
    (correct,) = (each for each in results if each["metric"] == "trial_correct")
    assert correct["score"] == kind.correct, correct["reason"]
    assert not [each["metric"] for each in results if each["success"] is False and kind.code == 0]
    if kind.correct is None:
        assert "the agent sent no spans, so its tool calls are not known" in correct["reason"]


def test_exit_code_is_2_without_spans_and_without_a_grader_of_answers(tmp_path: Path) -> None:
    with _served(_plain, "") as url:
        case = {**CASE, **CALLS, "output_format": None}
        suite = {"agents": {"shop": {"url": url, "spans": False}}, "cases": [case]}
        (tmp_path / "suite.json").write_text(json.dumps(suite))
        (tmp_path / "pandaeval.yaml").write_text("{}")
        done = _run(tmp_path)
    assert done.returncode == 2, done.stderr
    assert "no spans of the agent arrived for 1 of 1 attempt" in done.stderr


def _said_by(number: int) -> Respond:
    return lambda handler, body: handler.reply({"answer": f"{number}: {body['messages'][-1]['content']}"})


@pytest.mark.parametrize(
    ("options", "answers"),
    [((), ["1: hi", "1: hi", "2: hi"]), (("--agent", "second"), ["2: hi", "2: hi", "2: hi"])],
)
def test_cases_select_their_agents_and_the_agent_option_overrides_them(
    tmp_path: Path, options: tuple[str, ...], answers: list[str]
) -> None:
    with _served(_said_by(1), "") as first, _served(_said_by(2), "") as second:
        agents = {name: {"url": url, "spans": False} for name, url in (("first", first), ("second", second))}
        cases = [
            {"id": f"case-{at}", **named, "inputs": {"task": "hi"}, "graders": ["./own.py:says"]}
            for at, named in enumerate(({}, {"agent": "first"}, {"agent": "second"}))
        ]
        (tmp_path / "own.py").write_text("def says(trial): return True, trial.answer")
        (tmp_path / "suite.json").write_text(json.dumps({"agents": agents, "cases": cases}))
        (tmp_path / "pandaeval.yaml").write_text("{}")
        done = _run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    results = [*result_lines(tmp_path / "pandaeval-run" / "results.jsonl")]
    reasons = {each["metadata"]["case"]: each["reason"] for each in results if each["metric"] == "says"}
    assert [reasons[name] for name in sorted(reasons)] == answers


def _run(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_", "GITHUB"))}
    command = "from pandaeval_collector.cli import main; main()"
    words = ("cases", "run", "suite.json", "-c", "pandaeval.yaml", *options)
    return subprocess.run(
        [sys.executable, "-c", command, *words],
        cwd=folder,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
