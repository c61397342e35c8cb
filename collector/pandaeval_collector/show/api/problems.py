"""API errors as problem objects (RFC 9457)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from pandaeval_collector.base.filters import PAIR
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.show.api.refusals import MEDIA, refusal, title
from pandaeval_collector.store.connection import TooSlowError

NO_TRACE = "no scored agent trace has this ID; it may still be open, or already deleted"
NO_SESSION = "no session with a scored trace has this ID"


TRACE_ID = "^[0-9a-fA-F]{32}$"
_PATTERNS = {
    PAIR: "write key=value, such as service.version=1.4",
    TRACE_ID: "write the whole ID of a trace, 32 hexadecimal digits",
}
"""The errors of texts that do not match a pattern."""


class ProblemBody(BaseModel):
    """An error. ``title``: kind of problem. ``detail``: cause and fix."""

    status: int
    title: str
    detail: str


class ProblemError(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def _documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA: {"schema": ProblemBody.model_json_schema()}}
    return {status: {"description": title(status).capitalize(), "content": content} for status in statuses}


DOCUMENTED = _documented(400, 404, 422, 503)
"""The errors of every operation, for the OpenAPI document."""
WRITES = _documented(403, 408, 413, 415)
"""The further errors of every operation that changes something."""


def parameter_error(loc: Sequence[int | str], fault: Any) -> str:
    """Return a fault of a parameter as pydantic found it, in plain words."""
    what = re.sub(r"^\w+ should ", "must ", fault["msg"])
    return f"{'.'.join(map(str, loc))}: {_PATTERNS.get(fault.get('ctx', {}).get('pattern'), what)}"


@contextmanager
def save_errors_as_problems(what: str) -> Iterator[None]:
    """Raise :class:`ProblemError` if the store does not take ``what``: a full disk; a store that closes."""
    try:
        yield
    except (sqlite3.Error, RuntimeError) as error:
        raise ProblemError(503, f"{what} could not be saved; try again in a moment") from error


def refuse_unknown_parameters(app: FastAPI) -> None:
    """Answer 422 to a query parameter that an operation does not document. Else the answer would have no filter."""

    @cache
    def documented(path: str, method: str) -> frozenset[str] | None:
        operation = app.openapi()["paths"].get(path, {}).get(method.lower())
        if operation is None:
            return None
        return frozenset(each["name"] for each in operation.get("parameters", ()) if each["in"] == "query")

    async def check(request: Request) -> None:
        known = documented(request.scope["route"].path, request.method)
        unknown = () if known is None else sorted({*request.query_params} - known)
        if unknown:
            names = ", ".join(sorted(known or ())) or "none"
            raise ProblemError(422, f"{unknown[0][:80]}: no such parameter; the parameters of this operation: {names}")

    app.router.dependencies.append(Depends(check))


def answer_problems(app: FastAPI) -> None:
    async def answer(_: Request, error: Any) -> JSONResponse:
        match error:
            case ProblemError():
                return refusal(error.status, error.detail)
            case HTTPException():
                return refusal(error.status_code, str(error.detail), error.headers)
            case TooSlowError():
                return refusal(503, str(error), {"retry-after": "10"})
            case RequestValidationError():
                faults = "; ".join(parameter_error(each["loc"][1:], each) for each in error.errors())
                return refusal(422, one_printable_line(faults)[:2000])
        what = f"the store cannot be read now ({one_printable_line(str(error))}); see /readyz and the log"
        return refusal(503, what, {"retry-after": "10"})

    for kind in (ProblemError, RequestValidationError, TooSlowError, sqlite3.Error, HTTPException):
        app.add_exception_handler(kind, answer)
