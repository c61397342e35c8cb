"""The live page: one file that draws itself from what the API says."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.show.report.shell import live_shell


def page_app() -> ASGIApp:
    """Answers GET and HEAD with the page. Its policy lets it run its own script and ask its own collector, and nothing
    else; no other page may hold it in a frame."""
    html, policy = live_shell()
    headers = {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache, private",
    }
    body = html.encode()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = Request(scope).method in ("GET", "HEAD")
        response = (
            Response(body, headers=headers, media_type="text/html")
            if asked
            else Response("the page is read with GET\n", 405, {"allow": "GET, HEAD"})
        )
        await response(scope, receive, send)

    return answer
