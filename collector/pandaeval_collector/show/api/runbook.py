"""What to do about each alert, where alerts link to: the section of docs/operations.md, as a page."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse

PATH = "/runbook"
_SECTION = re.compile(r"^### (alert-[a-z-]+)$", re.MULTILINE)
_HEAD = (
    "<!doctype html><meta charset=utf-8><title>pandaeval: what to do about an alert</title>"
    "<style>body{font:16px/1.5 system-ui;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "p{white-space:pre-line}:target{background:#fd03}</style>"
)


async def runbook(_: Request) -> HTMLResponse:
    """A heading with an anchor for each alert, and its text."""
    return HTMLResponse(page(), headers={"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"})


def page() -> str:
    """The whole page."""
    text = Path(__file__).with_name("runbook.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return _HEAD + "".join(f"<h2 id={name}>{name}</h2><p>{escape(said.strip())}</p>" for name, said in sections)
