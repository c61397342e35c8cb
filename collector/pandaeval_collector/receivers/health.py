"""Health and self-metrics, on a listener of their own that never shows content: probes may reach it from anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route


def health_app(
    ready: Callable[[], Mapping[str, bool]],
    metrics: Callable[[str], Awaitable[tuple[bytes, str]]] | None,
    why: Callable[[], str] = lambda: "",
) -> Starlette:
    """``GET /healthz`` (200 while the process answers), ``/readyz`` (200 once every stage of ``ready`` is, else 503;
    body: the stages, and as ``reason`` what ``why`` says is wrong, if it does) and, if given, ``/metrics`` (what
    ``metrics`` makes of the ``accept`` header: content, content type). All three run on the event loop and must not
    block."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        stages, reason = dict(ready()), why()
        said = {**stages, "reason": reason} if reason else stages
        return JSONResponse(said, 200 if stages and all(stages.values()) else 503)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz)]
    if metrics is not None:
        routes.append(Route("/metrics", _scrape(metrics)))
    return Starlette(routes=routes)


def _scrape(metrics: Callable[[str], Awaitable[tuple[bytes, str]]]) -> Callable[[Request], Awaitable[Response]]:
    async def scrape(request: Request) -> Response:
        content, content_type = await metrics(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": content_type})

    return scrape
