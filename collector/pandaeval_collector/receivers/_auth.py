"""Bearer tokens."""

from __future__ import annotations

import hmac

UNAUTHENTICATED_MESSAGE = "send the header 'authorization: Bearer <token>' with the token of this collector"


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
