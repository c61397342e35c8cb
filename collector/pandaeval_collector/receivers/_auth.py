"""Who may enter: senders and programs show the token, and browsers send it as the password of HTTP Basic."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping

UNAUTHENTICATED_MESSAGE = "send the header 'authorization: Bearer <token>' with the token of this collector"
_READING = ("GET", "HEAD")


def require_token(token: str | None) -> None:
    """Raises :class:`ValueError` for an empty token, which anybody would have."""
    if token == "":
        raise ValueError("the token is empty: set the environment variable that server.token_env names")


def is_authorised(header: str | bytes | None, token: str) -> bool:
    """Whether an ``authorization`` header carries ``token``. Takes the same time for every wrong token."""
    if header is None:
        return False
    given = header.encode("utf-8", "replace") if isinstance(header, str) else header
    scheme, _, credentials = given.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(credentials.strip(), token.encode())


def is_page(path: str) -> bool:
    """Whether people reach ``path`` by a browser: the page, and the API that it asks."""
    return path == "/" or path.startswith("/api/")


def is_logged_in(method: str, headers: Mapping[bytes, bytes], token: str) -> bool:
    """Whether a browser sends ``token`` as its password, under any name. Browsers send it with every request to this
    address, also where a page of others made them; so what changes something has to come from our own page."""
    scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
    try:
        _, _, password = base64.b64decode(credentials.strip(), validate=True).partition(b":")
    except binascii.Error:
        return False
    known = scheme.lower() == b"basic" and hmac.compare_digest(password, token.encode())
    return known and (method in _READING or _from_own_page(headers))


def _from_own_page(headers: Mapping[bytes, bytes]) -> bool:
    if b"sec-fetch-site" in headers:
        return headers[b"sec-fetch-site"] == b"same-origin"
    _, _, origin = headers.get(b"origin", b"").partition(b"://")
    return origin != b"" and origin == headers.get(b"host")
