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
from pandaeval_lab.running.agent import AgentError, RunContext, http_agent, python_agent

AGENTS = """
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

def nothing():
    return ""

number = 1
"""
SAID = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "hi"})
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
def test_functions_coroutines_and_objects_answer(folder: Path, name: str, answer: str) -> None:
    agent = python_agent(f"./agents.py:{name}")
    assert asyncio.run(_said(agent())) == answer
    assert asyncio.run(_said(agent())) == answer, "a class has an object for each trial"


def test_an_object_is_one_for_all_trials(folder: Path) -> None:
    agent = python_agent("./agents.py:desk")
    assert [asyncio.run(_said(agent())) for _ in range(2)] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wrong", "it returned dict in place of a text"),
        ("crash", "ValueError: no such order"),
        ("ends", "SystemExit: 3"),
    ],
)
def test_an_agent_that_gives_no_text_says_why(folder: Path, name: str, why: str) -> None:
    with pytest.raises(AgentError, match=why):
        asyncio.run(_said(python_agent(f"./agents.py:{name}")()))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("agents", "name the function too, as in agents:answer"),
        ("./agents.py:nobody", "there is no nobody; write def nobody"),
        ("./agents.py:number", "number is no agent; write def number"),
        ("./agents.py:nothing", "write def nothing"),
        ("./nowhere.py:f", "there is no file"),
        ("no_such_module_here:f", "there is no module no_such_module_here"),
    ],
)
def test_a_name_that_is_no_agent_ends_the_command(folder: Path, spec: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        python_agent(spec)


async def _said(talk: Any) -> str:
    answer: str = await talk("hi", CONTEXT)
    return answer


class _Server(HTTPServer):
    replies: list[tuple[int, bytes]]
    got: list[tuple[dict[str, str], dict[str, Any]]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.append(({key.lower(): value for key, value in self.headers.items()}, body))
        status, reply = self.server.replies.pop(0)
        self.send_response(status)
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


def _asked(server: _Server, path: str) -> str:
    async def ask() -> str:
        async with AsyncExitStack() as held:
            agent = http_agent(f"http://127.0.0.1:{server.server_port}{path}", held)
            return await _said(agent())

    return asyncio.run(ask())


def test_an_address_gets_the_documented_request(server: _Server) -> None:
    server.replies.append((200, b'{"answer": "yes"}'))
    assert _asked(server, "/talk") == "yes"
    ((_, body),) = server.got
    assert body.pop("messages") == list(SAID)
    known = {"session": "refund/1", "case": "refund", "trial": "1", "turn": 1, "inputs": {"order": 17}}
    assert body == {"message": "hi", **known}


def test_chat_completions_get_a_request_as_openai_takes_it(server: _Server) -> None:
    server.replies.append((200, b'{"choices": [{"message": {"role": "assistant", "content": "yes"}}]}'))
    assert _asked(server, "/v1/chat/completions") == "yes"
    assert server.got[0][1] == {"model": "agent", "messages": list(SAID)}


@pytest.mark.parametrize(
    ("status", "reply", "why"),
    [
        (500, b"boom", "answered 500: boom"),
        (200, b'{"text": "x"}', 'answer {"answer": text}, or as OpenAI chat completions do'),
        (200, b'{"answer": 1}', "answer "),
        (200, b"hello", "answered 200: hello"),
        (200, b'{"choices": []}', "answered "),
    ],
)
def test_another_answer_is_told_with_what_to_answer(server: _Server, status: int, reply: bytes, why: str) -> None:
    server.replies.append((status, reply))
    with pytest.raises(AgentError) as raised:
        _asked(server, "/talk")
    assert why in str(raised.value)
