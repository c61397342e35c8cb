"""A loopback HTTP server for webhooks, which keeps posts and answers with given statuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = 0
"""In place of a status: no answer until the server ends."""
SECRET = "T0000-a-secret-path-of-4711"


class WebhookServer:
    """``posts``: bodies, oldest first. ``statuses``: of the next answers; then 200."""

    def __init__(self) -> None:
        self.posts: list[Any] = []
        self.statuses: list[int] = []
        self.ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == f"/hook/{SECRET}"
                outer.posts.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                status = outer.statuses.pop(0) if outer.statuses else 200
                if status == HANG:
                    outer.ended.wait()
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook/{SECRET}"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for post in self.posts for event in post["events"]]

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def webhook_server() -> Iterator[WebhookServer]:
    server = WebhookServer()
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.close()
