"""Problem objects (RFC 9457) without FastAPI."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

MEDIA = "application/problem+json"


def title(status: int) -> str:
    return HTTPStatus(status).phrase.lower()


def refusal(status: int, detail: str, headers: Any = None) -> JSONResponse:
    """Return the answer. ``detail``: cause and fix. ``headers``: further headers."""
    body = {"status": status, "title": title(status), "detail": detail}
    return JSONResponse(body, status, headers=headers if isinstance(headers, dict) else None, media_type=MEDIA)
