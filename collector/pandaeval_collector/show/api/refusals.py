"""How the API says what is wrong with a request: a JSON object (RFC 9457). Needs no FastAPI, as what stands in front of
it does not."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

MEDIA = "application/problem+json"


def title(status: int) -> str:
    """Return the kind of problem that a status stands for."""
    return HTTPStatus(status).phrase.lower()


def refusal(status: int, detail: str, headers: Any = None) -> JSONResponse:
    """Return the answer. ``detail``: the cause and the cure; ``headers``: a dictionary of further headers."""
    body = {"status": status, "title": title(status), "detail": detail}
    return JSONResponse(body, status, headers=headers if isinstance(headers, dict) else None, media_type=MEDIA)
