"""How the API says what is wrong with a request: a JSON object (RFC 9457). Needs no FastAPI, as what stands in front of
it does not."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

MEDIA = "application/problem+json"
_TITLES = {
    400: "bad request",
    403: "foreign origin",
    404: "not found",
    405: "method not allowed",
    408: "too slow",
    413: "too large",
    415: "not JSON",
    422: "invalid parameters",
    429: "too many",
    503: "too slow",
}


def title(status: int) -> str:
    """Returns the kind of problem that a status stands for."""
    return _TITLES.get(status, "error")


def refusal(status: int, detail: str, headers: Any = None) -> JSONResponse:
    """Returns the answer. ``detail``: what is wrong and what to do; ``headers``: a dictionary of further headers."""
    body = {"status": status, "title": title(status), "detail": detail}
    return JSONResponse(body, status, headers=headers if isinstance(headers, dict) else None, media_type=MEDIA)
