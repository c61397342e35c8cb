"""Health and self-metrics, on a listener of their own that never shows content: probes may reach it from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host
from pandaeval_collector.receivers.streaming import Answer, Streaming


def health_app(
    ready: Callable[[], Mapping[str, bool]],
    metrics: Answer | None,
    why: Callable[[], str] = lambda: "",
    hosts: Collection[str] | None = None,
) -> Starlette:
    """``GET /healthz`` (200 while the process answers), ``/readyz`` (200 once every stage of ``ready`` is, else 503;
    body: the stages, and as ``reason`` what ``why`` says is wrong, if it does) and, if given, ``/metrics`` (what
    ``metrics`` makes of the ``accept`` header: content type, and content in pieces). All three run on the event loop
    and must not block. ``hosts``: names under which metrics may be read beside addresses and localhost, so that no web
    page of others reads any; ``None``: any name."""
    names = None if hosts is None else frozenset(name.lower() for name in hosts)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        stages, reason = dict(ready()), why()
        said = {**stages, "reason": reason} if reason else stages
        return JSONResponse(said, 200 if stages and all(stages.values()) else 503)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz)]
    if metrics is not None:
        streaming = Streaming(metrics)

        async def scrape(request: Request) -> Response:
            if names is not None and not is_known_host(request.headers.get("host", ""), names):
                return PlainTextResponse(f"{HOSTS_TOLD}\n", 421)
            return await streaming(request)

        routes.append(Route("/metrics", scrape))
    return Starlette(routes=routes)
