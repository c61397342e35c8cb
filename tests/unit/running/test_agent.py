"""Discovery and calls of the tested agent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.running.agent import Agent, AgentError, RunContext
from pandaeval_lab.running.kinds import entry_of, start
from pandaeval_lab.running.mock_replies import MockReplies

AGENTS = """
import asyncio

def text(message, context):
    return f"{message} {context.case} {context.turn}"

def alone(message):
    return message.upper()

async def conversation(messages, context):
    return " ".join(each["role"] for each in messages)

class Desk:
    def __init__(self):
        self.count = 0
    def send(self, message, context):
        self.count += 1
        return str(self.count)

desk = Desk()

def wrong(message, context):
    return {"answer": message}

def crash(message, context):
    raise ValueError("no such order")

def ends(message):
    raise SystemExit(3)

def cancels(message):
    raise asyncio.CancelledError

def nothing():
    return ""

number = 1
"""
SAID = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "hi"})
REFUND = {"id": "refund", "mocks": {"refund_order": {"results": ["pending", {"refunded": 40}]}}}
CONTEXT = RunContext("refund", "1", "refund/1", 1, SAID, {"order": 17})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("text", "hi refund 1"),
        ("alone", "HI"),
        ("conversation", "user assistant user"),
        ("Desk", "1"),
    ],
)
def test_functions_coroutines_and_classes_can_be_agents(folder: Path, name: str, answer: str) -> None:
    agent = _started(f"./agents.py:{name}")
    assert asyncio.run(_said(agent())) == answer
    assert asyncio.run(_said(agent())) == answer, "each trial creates its own object"


def test_an_object_is_shared_by_all_trials(folder: Path) -> None:
    agent = _started("./agents.py:desk")
    assert [asyncio.run(_said(agent())) for _ in range(2)] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wrong", "it returned dict instead of a text"),
        ("crash", "ValueError: no such order"),
        ("ends", "SystemExit: 3"),
    ],
)
def test_the_error_explains_why_an_agent_returned_no_text(folder: Path, name: str, why: str) -> None:
    with pytest.raises(AgentError, match=why):
        asyncio.run(_said(_started(f"./agents.py:{name}")()))


def test_a_cancelled_error_of_an_agent_on_a_thread_reaches_its_turn(folder: Path) -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_said(_started("./agents.py:cancels")()))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("agents", "name the function too, as in agents:answer"),
        ("./agents.py:nobody", "there is no nobody; write def nobody"),
        ("./agents.py:number", "number is not an agent; write def number"),
        ("./agents.py:nothing", "write def nothing"),
        ("./nowhere.py:f", "there is no file"),
        ("no_such_module_here:f", "there is no module no_such_module_here"),
    ],
)
def test_a_name_that_is_no_agent_is_a_usage_error(folder: Path, spec: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        _started(spec)


def _started(agent: Any, held: AsyncExitStack | None = None) -> Agent:
    suite = Suite.model_validate({"agents": {"shop": agent}, "cases": [REFUND]})
    return start(entry_of("shop", suite), held or AsyncExitStack(), MockReplies(suite.cases, default="refund"))


async def _said(talk: Any) -> str:
    answer: str = await talk("hi", CONTEXT)
    return answer


class _Server(HTTPServer):
    replies: list[tuple[int, bytes] | tuple[int, bytes, str]]
    got: list[tuple[dict[str, str], dict[str, Any]]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.append(({key.lower(): value for key, value in self.headers.items()}, body))
        status, reply, *kind = self.server.replies.pop(0)
        self.send_response(status)
        self.send_header("content-type", *(kind or ["application/json"]))
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server(("127.0.0.1", 0), _Handler)
    made.replies, made.got = [], []
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def _asked(server: _Server, path: str, **given: Any) -> str:
    entry = {**given, "url": f"http://127.0.0.1:{server.server_port}{path}"}

    async def ask() -> str:
        async with AsyncExitStack() as held:
            return await _said(_started(entry, held)())

    return asyncio.run(ask())


def test_an_http_agent_gets_the_documented_request(server: _Server) -> None:
    server.replies.append((200, b'{"answer": "yes"}'))
    assert _asked(server, "/talk") == "yes"
    ((_, body),) = server.got
    assert body.pop("messages") == list(SAID)
    known = {"session": "refund/1", "case": "refund", "trial": "1", "turn": 1, "inputs": {"order": 17}}
    assert body == {"message": "hi", **known}


def test_a_chat_completions_endpoint_gets_an_openai_request(server: _Server) -> None:
    server.replies.append((200, b'{"choices": [{"message": {"role": "assistant", "content": "yes"}}]}'))
    assert _asked(server, "/v1/chat/completions") == "yes"
    assert server.got[0][1] == {"model": "agent", "messages": list(SAID)}


@pytest.mark.parametrize(
    ("status", "reply", "why"),
    [
        (500, b"boom", "answered 500: boom"),
        (200, b'{"text": "x"}', 'return JSON with {"answer": text}, or an OpenAI chat completion'),
        (200, b'{"answer": 1}', "return JSON with"),
        (200, b"hello", "answered 200: hello"),
        (200, b'{"choices": []}', "answered "),
    ],
)
def test_an_invalid_http_answer_is_shown_in_the_error(server: _Server, status: int, reply: bytes, why: str) -> None:
    server.replies.append((status, reply))
    with pytest.raises(AgentError) as raised:
        _asked(server, "/talk")
    assert why in str(raised.value)


def test_a_plain_text_is_an_answer(server: _Server) -> None:
    server.replies.append((200, b"yes", "text/plain; charset=utf-8"))
    assert _asked(server, "/talk") == "yes"


def test_the_request_body_headers_and_answer_path_can_be_configured(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "s3cret")
    server.replies.append((200, b'{"data": [{"text": "yes"}]}'))
    body = {"q": "{message}", "all": ["begin", "{messages}"], "note": "turn {turn} of {case} {other}", "n": 1}
    headers = {"authorization": "Bearer ${KEY}"}
    assert _asked(server, "/talk", body=body, headers=headers, answer="data.0.text") == "yes"
    (head, sent), *_ = server.got
    assert sent == {"q": "hi", "all": ["begin", *SAID], "note": "turn 1 of refund {other}", "n": 1}
    assert head["authorization"] == "Bearer s3cret"


def test_an_unset_environment_variable_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UserError, match="agent shop, headers, x: the environment variable NO_SUCH_KEY is not set"):
        _started({"url": "http://127.0.0.1:1", "headers": {"x": "${NO_SUCH_KEY}"}})


def test_an_empty_environment_variable_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    with pytest.raises(UserError, match="agent shop: url is empty"):
        _started({"url": "${EMPTY}"})


def test_white_space_around_an_environment_variable_is_dropped(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "s3cret\n")
    server.replies.append((200, b'{"answer": "yes"}'))
    assert _asked(server, "/talk", headers={"x": "${KEY}"}) == "yes"
    assert server.got[0][0]["x"] == "s3cret"


def test_the_error_about_an_invalid_header_hides_its_value(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "s3cret\nx")
    with pytest.raises(AgentError, match="a header has a character that HTTP does not allow") as raised:
        _asked(server, "/talk", headers={"x": "${KEY}"})
    assert "s3cret" not in str(raised.value)


def test_errors_name_an_address_without_its_secrets(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "s3cret")
    server.replies.append((500, b"boom"))
    with pytest.raises(AgentError) as raised:
        _asked(server, "/talk?key=${KEY}")
    assert str(raised.value).startswith(f"http://127.0.0.1:{server.server_port}/talk answered 500: boom")
    with pytest.raises(AgentError) as raised:
        asyncio.run(_said(_started({"url": "http://me:${KEY}@127.0.0.1:1/talk"})()))
    assert str(raised.value).startswith("http://127.0.0.1:1/talk cannot be reached")


def test_the_runner_answers_the_tool_calls_of_an_http_agent(server: _Server) -> None:
    call = {"id": "c1", "function": {"name": "refund_order", "arguments": '{"order": 17}'}}
    wrong = {"id": "c2", "name": "refund_order", "arguments": "17"}
    server.replies += [(200, json.dumps({"tool_calls": each}).encode()) for each in ([call, wrong], [call])]
    server.replies.append((200, b'{"answer": "yes"}'))
    assert _asked(server, "/talk") == "yes"
    messages = server.got[-1][1]["messages"]
    assert messages[:3] == list(SAID)
    assert [each["role"] for each in messages[3:]] == ["assistant", "tool", "tool", "assistant", "tool"]
    first, refused, last = [each["content"] for each in messages if each["role"] == "tool"]
    assert (first, last) == ("pending", '{"refunded": 40}')
    assert "the arguments are not a JSON object" in refused


def test_tool_results_stay_before_the_answer_of_their_turn(server: _Server) -> None:
    asks = b'{"tool_calls": [{"name": "refund_order", "arguments": {}}]}'
    server.replies += [(200, asks), (200, b'{"answer": "yes"}'), (200, b'{"answer": "bye"}')]

    async def talk() -> None:
        async with AsyncExitStack() as held:
            agent = _started({"url": f"http://127.0.0.1:{server.server_port}"}, held)()
            first = {"role": "user", "content": "hi"}
            assert await agent("hi", RunContext("refund", "1", "s", 0, (first,))) == "yes"
            messages = (first, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "bye"})
            assert await agent("bye", RunContext("refund", "1", "s", 1, messages)) == "bye"

    asyncio.run(talk())
    roles = [each["role"] for each in server.got[-1][1]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_a_chat_completions_request_contains_the_configured_body_fields(server: _Server) -> None:
    calls = [{"id": "c1", "function": {"name": "refund_order", "arguments": "{}"}}]
    server.replies += [(200, json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode())]
    server.replies += [(200, b'{"choices": [{"message": {"content": "yes"}}]}')]
    tools = [{"type": "function", "function": {"name": "refund_order"}}]
    body = {"model": "m", "temperature": 0, "tools": tools}
    assert _asked(server, "/v1/chat/completions", body=body) == "yes"
    sent = server.got[0][1]
    assert (sent["model"], sent["temperature"], sent["messages"]) == ("m", 0, list(SAID))
    assert sent["tools"] == tools
    assert server.got[1][1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "pending"}
