"""A scripted model server on loopback.

Base URL ``http://127.0.0.1:PORT/SCENARIO/v1``. Serves OpenAI ``chat/completions``, ``responses``, ``embeddings`` and
``models``, Anthropic ``messages`` and Gemini ``generateContent``. Answers depend only on requests.

python tests/support/model_server.py --port 8080 [--scripts MODULE:NAME]
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

if __name__ == "__main__":  # started as a file: make `tests` importable
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.script import Fault, Script
from tests.support.wire import chat, embeddings, gemini, messages, responses
from tests.support.wire.parts import Event, Ids, Wire

WIRES: dict[str, Wire] = {
    "chat/completions": chat,
    "responses": responses,
    "messages": messages,
    "generateContent": gemini,
    "streamGenerateContent": gemini,
}


class ModelServer:
    """The server as a context manager on its own thread.

    ``scripts``: by scenario. ``port``: 0 for a free one. ``requests``: (scenario, route, body) of every POST.
    """

    def __init__(self, scripts: Mapping[str, Script], *, port: int = 0, latency_s: float = 0.0) -> None:
        self.scripts = scripts
        self.latency_s = latency_s
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.histories: dict[str, list[Any]] = {}
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def root(self) -> str:
        """Return ``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def url(self, scenario: str) -> str:
        return f"{self.root}/{scenario}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a delayed reply must not block the end of a test
    owner: ModelServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self.path.endswith("/models"):
            return self._fault(chat, Fault(404, f"No such route: {self.path}", "invalid_request_error"))
        model = {"id": "scripted-model", "object": "model", "created": 0, "owned_by": "tests"}
        return self._json(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        scenario, _, rest = self.path.partition("?")[0].lstrip("/").partition("/")
        route = rest.rpartition(":")[2] if ":" in rest else rest.removeprefix("v1/")
        owner = cast(_Http, self.server).owner
        owner.requests.append((scenario, route, body))
        time.sleep(owner.latency_s)
        if route == "embeddings":
            return self._json(200, embeddings.respond(body))
        wire, script = WIRES.get(route), owner.scripts.get(scenario)
        if wire is None or script is None:
            return self._fault(wire or chat, Fault(404, f"No such route: {self.path}", "invalid_request_error"))
        if wire is responses:
            body = responses.with_history(body, owner.histories)
        return self._answer(wire, script, body, streamed=bool(body.get("stream")) or route.startswith("stream"))

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":  # the JDK's client sends chunks
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(self, wire: Wire, script: Script, body: dict[str, Any], *, streamed: bool) -> None:
        conversation = wire.parse(body)
        reply = script(conversation)
        if isinstance(reply, Fault):
            return self._fault(wire, reply)
        calls = tuple(replace(call, name=conversation.offered(call.name)) for call in reply.calls)
        reply = replace(reply, calls=calls)
        response = wire.render(reply, conversation, Ids(conversation.digest()))
        if wire is responses:
            cast(_Http, self.server).owner.histories[response["id"]] = [*body["input"], *response["output"]]
        return self._events(wire.stream(response)) if streamed else self._json(200, response)

    def _fault(self, wire: Wire, fault: Fault) -> None:
        time.sleep(fault.delay_s)
        body = fault.raw.encode() if fault.raw is not None else json.dumps(wire.fault(fault)).encode()
        self._send(fault.status, "application/json", body)

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body, ensure_ascii=False).encode())

    def _events(self, events: Iterable[Event]) -> None:
        lines = []
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            lines.append(f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n")
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument(
        "--scripts", default="tests.lab.rig.scenarios:SCRIPTS", help="MODULE:NAME of a mapping of scripts"
    )
    arguments = parser.parse_args()
    module, _, name = arguments.scripts.partition(":")
    scripts = getattr(importlib.import_module(module), name)
    with ModelServer(scripts, port=arguments.port) as server:
        print(f"{server.root}/<scenario>/v1 with scenario one of: {', '.join(sorted(scripts))}")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
