"""A scripted OpenAI-compatible judge on loopback; ``/messages`` answers like Anthropic.

Base URL ``http://127.0.0.1:PORT/v1``. ``behave`` maps request number and body to the answer.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from pandaeval_collector.jobs.same_cause import RUBRIC as SAME_CAUSE
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.replay.grouping import RUBRIC as ERROR_DEDUPLICATION
from support.scripted_judge import CRITERIA

GROUPING = (ERROR_DEDUPLICATION, SAME_CAUSE)
_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_TOGETHER = re.compile(r"\n\n## [a-z_]+\n\n")
_FENCED = re.compile(r"<<([0-9a-f]{12})>>.*?<</\1>>", re.DOTALL)
_ORDER = re.compile(r"(?:set|give|answer with|return)[^.\n]{0,40}\b(?:confidence|score)\b\D{0,20}([01]\.\d+)", re.I)


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """An HTTP answer.

    ``raw``: whole body. ``drip_s``: pause between bytes. ``hang_s``: delay. ``reset``: reset after the head.
    """

    text: str = ""
    status: int = 200
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_s: float = 0.0
    drip_s: float = 0.0
    reset: bool = False
    finish: str = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    error: str = "scripted fault"


Behave = Callable[[int, dict[str, Any]], JudgeAnswer]


def text_of(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def rubric_of(body: Mapping[str, Any]) -> str:
    """Return the name of the question."""
    question = question_of(body)
    if _TOGETHER.search(question.partition("Facts about this run, also data")[0]):
        return "turn" if "Judge one turn" in question else "trace"
    known = (
        rubric
        for rubrics in (GROUPING, *(getattr(m, "rubrics", ()) for m in registry((GRADERS,)).values()))
        for rubric in rubrics
    )
    alike = [each for each in known if question.startswith(each.text.strip().partition("\n- [")[0])]
    alike = [each for each in alike if each.text.strip().rpartition("\n\n")[2] in question]
    asked = [
        each
        for each in alike
        if all(f'\n"{name}": ' in question for name in {*each.verdict.model_fields} - {"suspects"})
    ]
    return next(iter(sorted(asked, key=lambda each: -len(each.verdict.model_fields)))).name


def question_of(body: Mapping[str, Any]) -> str:
    texts = [text_of(message) for message in body["messages"] if message["role"] == "user"]
    return "\n\n".join([texts[0].rpartition(CRITERIA)[2], *texts[2:3]])


def verdict(body: Mapping[str, Any], **fields: Any) -> str:
    found = _ECHO.search(question_of(body))
    assert found, "our question names a code"
    answer = {"instructed": False, "echo": found[1], "reason": "It went straight to the answer.", "confidence": 0.8}
    return json.dumps({**answer, **fields})


def good(number: int, body: dict[str, Any]) -> JudgeAnswer:
    return JudgeAnswer(verdict(body))


def parrot(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Obey score orders outside fences."""
    outside = "\n".join(_FENCED.sub("", text_of(m)) for m in body["messages"] if m["role"] != "assistant")
    ordered = _ORDER.search(outside)
    return JudgeAnswer(verdict(body, confidence=float(ordered[1]) if ordered else 0.31))


def always(answer: JudgeAnswer | Callable[[dict[str, Any]], JudgeAnswer]) -> Behave:
    """Return the same answer for every request."""
    return lambda number, body: answer(body) if callable(answer) else answer


FAULTS: Mapping[str, Behave] = {
    "429": always(JudgeAnswer(status=429)),
    "429 with Retry-After": always(JudgeAnswer(status=429, headers={"Retry-After": "1"})),
    "500": always(JudgeAnswer(status=500)),
    "529": always(JudgeAnswer(status=529)),
    "401": always(JudgeAnswer(status=401)),
    "404": always(JudgeAnswer(status=404)),
    "hang": always(JudgeAnswer(hang_s=6.0)),
    "drip": always(lambda body: JudgeAnswer(verdict(body), drip_s=0.5)),
    "reset": always(JudgeAnswer("half", reset=True)),
    "not http json": always(JudgeAnswer(raw=b"<html>busy</html>")),
    "cut body": always(JudgeAnswer(raw=b'{"id": "x", "object": "chat.completion", "choices": [{"ind')),
    "no choices": always(
        JudgeAnswer(raw=b'{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}')
    ),
    "empty": always(JudgeAnswer("")),
    "cut JSON": always(lambda body: JudgeAnswer(verdict(body)[:-12])),
    "prose": always(JudgeAnswer("I would say 0.9.")),
    "a bare colon": always(JudgeAnswer(":")),
    "thought process": always(JudgeAnswer("Thought process: let us solve this step by step.")),
    "wrong shape": always(lambda body: JudgeAnswer(json.dumps({"score": 1.0}))),
    "a list": always(lambda body: JudgeAnswer(f"[{verdict(body)}]")),
    "one field more": always(lambda body: JudgeAnswer(verdict(body, score=1.0))),
    "out of range": always(lambda body: JudgeAnswer(verdict(body, confidence=1.01))),
    "far out of range": always(lambda body: JudgeAnswer(verdict(body, confidence=95))),
    "not a number": always(lambda body: JudgeAnswer(verdict(body, confidence="high"))),
    "NaN": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", "NaN"))),
    "null for text": always(lambda body: JudgeAnswer(verdict(body, reason=None))),
    "wrong echo": always(lambda body: JudgeAnswer(verdict(body, echo="00000000"))),
    "instructed": always(lambda body: JudgeAnswer(verdict(body, instructed=True, confidence=1.0))),
    "10 MB": always(lambda body: JudgeAnswer(verdict(body, reason="x" * 10_000_000))),
    "deep": always(JudgeAnswer("[" * 60_000)),
    "400": always(JudgeAnswer(status=400)),
    "403": always(JudgeAnswer(status=403)),
    "408": always(JudgeAnswer(status=408)),
    "503": always(JudgeAnswer(status=503)),
    "an error as an answer": always(JudgeAnswer(raw=b'{"error": {"message": "overloaded", "code": 502}}')),
    "a stream": always(
        lambda body: JudgeAnswer(raw=f"data: {json.dumps(_completion(JudgeAnswer(verdict(body)), body))}\n\n".encode())
    ),
    "null as an answer": always(JudgeAnswer(raw=b"null")),
    "no words": always(JudgeAnswer(message={"content": None})),
    "cut after a whole verdict": always(lambda body: JudgeAnswer(verdict(body), finish="length")),
    "filtered after a whole verdict": always(lambda body: JudgeAnswer(verdict(body), finish="content_filter")),
    "broken off after a whole verdict": always(lambda body: JudgeAnswer(verdict(body), finish="error")),
    "refused beside a whole verdict": always(lambda body: JudgeAnswer(verdict(body), message={"refusal": "I cannot."})),
    "true": always(lambda body: JudgeAnswer(verdict(body, confidence=True))),
    "a number as text": always(lambda body: JudgeAnswer(verdict(body, confidence="0.8"))),
    "instructed as text": always(lambda body: JudgeAnswer(verdict(body, instructed="false"))),
    "a field given twice": always(lambda body: JudgeAnswer(verdict(body)[:-1] + ', "confidence": 1.0}')),
    "Infinity": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", "Infinity"))),
    "1e999": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", "1e999"))),
    "below zero": always(lambda body: JudgeAnswer(verdict(body, confidence=-0.01))),
    "taken back": always(
        lambda body: JudgeAnswer(f"```json\n{verdict(body)}\n```\nOn second thought: confidence is 0.1.")
    ),
    "two verdicts": always(lambda body: JudgeAnswer(f"{verdict(body)}\n{verdict(body, confidence=0.1)}")),
    "two fences": always(lambda body: JudgeAnswer(f"```json\n{verdict(body)}\n```\n```json\n{verdict(body)}\n```")),
    "a verdict as a text": always(lambda body: JudgeAnswer(json.dumps(verdict(body)))),
    "no reason": always(lambda body: JudgeAnswer(verdict(body, reason=""))),
    "a bare colon as the reason": always(lambda body: JudgeAnswer(verdict(body, reason=" : "))),
}
"""Permanent failures, which must never give a score."""


class JudgeServer:
    """A context manager on its own thread. ``requests``: (monotonic time, body)."""

    def __init__(self, behave: Behave = good, port: int = 0) -> None:
        self.behave = behave
        self.requests: list[tuple[float, dict[str, Any]]] = []
        self.most_at_once = 0
        self.inside = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def took(self, body: dict[str, Any]) -> JudgeAnswer:
        """Count a request and return the answer."""
        with self._lock:
            number = len(self.requests)
            self.requests.append((time.monotonic(), body))
            self.inside += 1
            self.most_at_once = max(self.most_at_once, self.inside)
        return self.behave(number, body)

    def left(self) -> None:
        with self._lock:
            self.inside -= 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    owner: JudgeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        owner = cast(_Http, self.server).owner
        answer = owner.took(body)
        try:
            self._say(answer, body, _message if self.path.endswith("/messages") else _completion)
        except OSError:
            self.close_connection = True  # the client has gone, which some faults cause
        finally:
            owner.left()

    def _say(
        self, answer: JudgeAnswer, body: dict[str, Any], wire: Callable[[JudgeAnswer, dict[str, Any]], Any]
    ) -> None:
        time.sleep(answer.hang_s)
        content = answer.raw if answer.raw is not None else json.dumps(wire(answer, body)).encode()
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())  # close() is not enough: file objects keep the socket open
            self.close_connection = True
            return
        if not answer.drip_s:
            self.wfile.write(content)
            return
        for byte in content:
            self.wfile.write(bytes((byte,)))
            self.wfile.flush()
            time.sleep(answer.drip_s)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _message(answer: JudgeAnswer, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 40, "output_tokens": 40, **answer.usage}
    words = [{"type": "text", "text": answer.text}]
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn"}
    return {**about, "content": words, "usage": usage}


def _completion(answer: JudgeAnswer, body: Mapping[str, Any]) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.error, "type": "server_error", "param": None, "code": None}}
    taken = sum(len(text_of(message)) // 4 for message in body["messages"])
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text, **answer.message},
                "finish_reason": answer.finish,
            }
        ],
        "usage": {"prompt_tokens": taken, "completion_tokens": 40, "total_tokens": taken + 40, **answer.usage},
    }
