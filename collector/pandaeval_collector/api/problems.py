"""Errors of the API: a JSON object with the status, what is wrong and, where there is one, the cure (RFC 9457)."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from pandaeval_collector.store.finding import TooSlowError
from pandaeval_collector.untrusted.printable import one_printable_line

_MEDIA = "application/problem+json"
_TITLES = {
    400: "bad request",
    403: "refused",
    404: "not found",
    405: "method not allowed",
    409: "conflict",
    415: "not JSON",
    422: "invalid parameters",
    503: "too slow",
}


class ProblemBody(BaseModel):
    """What is wrong with a request. ``title``: the kind of problem; ``detail``: what is wrong and what to do."""

    status: int
    title: str
    detail: str


class ProblemError(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody, "description": _TITLES[status].capitalize()} for status in (400, 404, 422, 503)
}
"""The errors of every operation, for the OpenAPI document."""


def answer_problems(app: FastAPI) -> None:
    """Has every error of the application answered as a problem."""

    async def problem(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError)
        return _answer(error.status, error.detail)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        faults = (f"{'.'.join(str(part) for part in fault['loc'][1:])}: {fault['msg']}" for fault in error.errors())
        return _answer(422, one_printable_line("; ".join(faults))[:2000])

    async def slow(_: Request, error: Exception) -> JSONResponse:
        return _answer(503, str(error), {"retry-after": "10"})

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return _answer(error.status_code, str(error.detail), error.headers)

    app.add_exception_handler(ProblemError, problem)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(TooSlowError, slow)
    app.add_exception_handler(HTTPException, http)


def _answer(status: int, detail: str, headers: object = None) -> JSONResponse:
    body = ProblemBody(status=status, title=_TITLES.get(status, "error"), detail=detail)
    return JSONResponse(
        body.model_dump(), status, headers=headers if isinstance(headers, dict) else None, media_type=_MEDIA
    )
