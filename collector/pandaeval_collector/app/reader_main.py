"""The reader process for API, page, tools, runs and label statistics: ``python -m
pandaeval_collector.app.reader_main``.

It reads the store directly and sends writes to the main process.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.runtime.garbage import expect_imports, give_memory_back
from pandaeval_collector.base.runtime.peer import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config, secret
from pandaeval_collector.labels.rates import PassRates
from pandaeval_collector.runs.engine import RunSurroundings
from pandaeval_collector.runs.manager import EvaluationRuns
from pandaeval_collector.runs.settings import evaluator, judge
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show import API, MCP, PAGE, RUNBOOK
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.incidents import IncidentReads
from pandaeval_collector.show.api.live_page import page_app, runbook
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.show.listener import BoundedAnswers
from pandaeval_collector.show.mcp.endpoint import McpEndpoint
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.access import FrontWrites
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.reader import StoreReader

if TYPE_CHECKING:
    from pandaeval_collector.show.webhook import IncidentPosts

_log = logging.getLogger(__name__)

_NICE = 5
"""The process runs at a lower priority than the line."""
_RELAY_S = 2.0
"""Seconds between two reports of counters to the front."""
_RATES_S = 60.0
"""Seconds between two calculations of the corrected pass rates."""
_POST_S = 60.0
"""Seconds between two looks for events of the webhook."""


def application(reads: Reads, work: Work, runs: EvaluationRuns | None = None, address: str | None = None) -> ASGIApp:
    """Return the HTTP application. ``address``: public page address, if known."""
    api = api_app(reads, work, installed_version() or "0", runs)
    at: dict[str, ASGIApp] = {PAGE: page_app(), RUNBOOK: runbook, MCP: McpEndpoint(api, address)}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        app = at.get(scope["path"])
        await (api({**scope, "root_path": API}, receive, send) if app is None else app(scope, receive, send))

    return BoundedAnswers().bound(answer)


def _asking(front: Peer, name: str) -> Callable[..., Awaitable[Any]]:
    async def ask(_: Any, *arguments: Any) -> Any:
        return await front.ask(name, *arguments)

    return ask


async def _open(setup: tuple[Config, StoreClock], front: Peer) -> Handlers:
    config, clock = setup
    path, telemetry = Path(config.store.path), Telemetry()
    store = StoreAccess(StoreReader(path), FrontWrites(front), clock)
    judged = judge(config)
    models = frozenset[str]() if judged is None else frozenset(judged.models)
    answers = {name: _asking(front, name) for name in ("write", "emitted", "complete", "prices")}
    runs = EvaluationRuns(RunSurroundings(store, config, os.environ, answers, models), telemetry)
    await runs.start()

    async def relay() -> None:
        front.tell("measured", telemetry.relay())

    rounds = [
        Every(_RATES_S, PassRates(store, telemetry).update, "pandaeval-pass-rates"),
        Every(_RELAY_S, relay, "pandaeval-relay"),
    ]
    here = config.ui.url or f"http{'' if config.server.tls is None else 's'}://{config.server.http}"
    reads, page = Reads(Finder(path)), here if config.ui.enabled else None
    app = application(reads, _work(config, store, front), runs, page)
    if (posts := _incident_posts(config, reads, store, telemetry, page)) is not None:
        rounds.append(Every(_POST_S, posts.look, "pandaeval-webhook"))

    async def read(piece: Callable[[list[Message]], Awaitable[None]], scope: Scope, body: bytes) -> None:
        held: list[Message] = []

        async def send(message: Message) -> None:
            held.append(message)
            if message["type"] == "http.response.body":  # sent with the head, so that every head has a body
                messages = held.copy()
                held.clear()
                await piece(messages)

        try:
            await app(scope, _whole(body), send)
        except Exception:  # noqa: BLE001 - Starlette has answered 500 and logged the error
            _log.exception("the request %s %s failed", scope["method"], scope["path"])

    _kept.extend((runs, rounds))
    return {"read": read}


_kept: list[Any] = []
"""Keeps background objects alive."""


def _incident_posts(
    config: Config, reads: Reads, store: StoreAccess, telemetry: Telemetry, page: str | None
) -> IncidentPosts | None:
    variable = config.exporters.webhook.url_env
    url = secret(variable, os.environ)
    if variable is None or url is None:
        return None
    # Here, since most collectors have no webhook and need no HTTP client.
    from pandaeval_collector.show.webhook import IncidentPosts

    incidents = IncidentReads(reads.finder, Names(reads.finder, config.metrics.modules))
    return IncidentPosts(url, variable, config.exporters.webhook.format, (reads, incidents), store, telemetry, page)


def _work(config: Config, store: StoreAccess, front: Peer) -> Work:
    port = config.server.grpc.rpartition(":")[2]
    page = PageWork(config.ui.links, int(port) if port.isdecimal() else None)

    @cache
    def scorer() -> Evaluator:
        return evaluator(config)

    return Work(
        store,
        component_errors=lambda: front.ask("component_errors"),
        dismiss=partial(front.ask, "dismiss"),
        sinks_down=lambda: front.ask("sinks_down"),
        metrics=lambda: [(each, scorer().threshold(each)) for each in registry(config.metrics.modules).values()],
        modules=config.metrics.modules,
        judge=config.judge.model,
        daily_usd=config.judge.daily_usd,
        store_limit=config.store.max_bytes,
        page=page if config.ui.enabled else None,
    )


def _whole(body: bytes) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.Future()

    return receive


if __name__ == "__main__":
    expect_imports()
    give_memory_back()
    serve_together(_open, nice=_NICE)
