"""What a request that changes something has to show: that it comes from a program that means it, and not from a web
page of somebody else that a browser of this machine has open."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request

from pandaeval_collector.api.problems import ProblemError


def _meant(
    request: Request,
    origin: Annotated[str | None, Header(include_in_schema=False)] = None,
    sec_fetch_site: Annotated[str | None, Header(include_in_schema=False)] = None,
    content_type: Annotated[str, Header(include_in_schema=False)] = "",
) -> None:
    """A page cannot send JSON to a foreign host without asking it first, which nobody allows; nor lie about its
    origin."""
    if origin is not None and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower():
        raise ProblemError(403, "requests from pages of another origin are refused")
    if sec_fetch_site not in (None, "same-origin", "none"):
        raise ProblemError(403, "requests from pages of another origin are refused")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(415, "send the header 'content-type: application/json'")


WRITES = [Depends(_meant)]
"""Dependencies of every operation that changes something."""
