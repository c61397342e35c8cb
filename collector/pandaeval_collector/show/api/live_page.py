"""The live page, drawn from the API, and the runbook of alerts."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.show.report.text import live_shell

_SECTION = re.compile(r"^### (alert-[a-z-]+)$", re.MULTILINE)
_RUNBOOK_HEAD = (
    "<!doctype html><meta charset=utf-8><title>pandaeval: runbook</title>"
    "<style>body{font:16px/1.5 system-ui;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "p{margin:.3rem 0}:target{background:#fd03}</style>"
)


def page_app() -> ASGIApp:
    """Return the page as an application. Its policy allows only its own script and collector, and no framing."""
    html, policy = live_shell()
    headers = {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache, private",
    }
    return Response(html, headers=headers, media_type="text/html")


async def runbook(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the runbook: a heading with an anchor per alert, and the fix."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    await HTMLResponse(runbook_page(), headers={"content-security-policy": policy})(scope, receive, send)


def runbook_page() -> str:
    """Return ``runbook.md`` (also docs/operate/runbook.md) as HTML."""
    text = Path(__file__).with_name("runbook.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    names, texts = parts[::2], parts[1::2]
    index = "".join(f"<li><a href=#{name}>{name}</a>" for name in names)
    sections = zip(names, map(_advice, texts), strict=True)
    html = "".join(f"<h2 id={name}>{name}</h2>{advice}" for name, advice in sections)
    return f"{_RUNBOOK_HEAD}<p><a href=./>Overview</a><h1>Runbook</h1><ul>{index}</ul>{html}"


def _advice(text: str) -> str:
    items = [" ".join(item.split()) for item in text.strip().removeprefix("- ").split("\n- ")]
    html = "".join(f"<p>{escape(item)}</p>" for item in items)
    html = re.sub(r"\*([^*]+)\*", r"<i>\1</i>", re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html))
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
