"""A WSGI and ASGI application of agents: ``gunicorn support.web:wsgi``.

Every request runs an agent and returns ``{"pid": …, "trace": …}``. The path is the session. At its end, a process
writes its processor's counts to ``$BOOKS/PID.json``. PANDAEVAL_ENDPOINT: target.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from pandaeval_otel import PandaEvalSpanProcessor, using_session
from support.agents import run_agent
from support.processors import Recording

_WORK_S = 0.01


def write_books() -> None:
    books = {"balance": telemetry.balance(), "traces": traces}
    books |= {outcome: telemetry.of("traces", outcome) for outcome in ("acknowledged", "dropped", "rejected")}
    (Path(os.environ["BOOKS"]) / f"{os.getpid()}.json").write_text(json.dumps(books))


def _forget() -> None:
    """Drop counts of the parent after a fork."""
    telemetry.counts.clear()
    traces.clear()


def play() -> bytes:
    """Run an agent and return the response."""
    traces.append(run_agent(tracer, len(traces)))
    return json.dumps({"pid": os.getpid(), "trace": traces[-1]}).encode()


telemetry = Recording()
traces: list[str] = []
atexit.register(write_books)  # registered before the provider, so it runs after the provider's shutdown
provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor(telemetry=telemetry))
tracer = provider.get_tracer("web")
os.register_at_fork(after_in_child=_forget)
play()
assert provider.force_flush()  # with --preload, a thread and a connection exist before the workers fork


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serve gunicorn; ``sys.exit`` shuts the provider down."""
    with using_session(environ["PATH_INFO"].strip("/")):
        time.sleep(_WORK_S)
        body = play()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[dict[str, Any]], Any]) -> None:
    """Serve uvicorn; the lifespan's end shuts the provider down."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.to_thread(provider.shutdown)
        write_books()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await asyncio.sleep(_WORK_S)
    body = play()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
