"""Ids of sessions whose services use the same session id.

The first service keeps the id as sent. Each other service, or group of joined services, gets an id of its own.
"""

from __future__ import annotations

from functools import lru_cache

_OWN = "@service:"


def own_id(sent: str, service: str) -> str:
    """Return the id of a session that shares its sent id with another service's session."""
    return f"{sent}{_OWN}{service}"


@lru_cache(maxsize=256)
def sent_id(session_id: str) -> str:
    """Return a session id as the spans name it."""
    return session_id.partition(_OWN)[0]


def shares(session_id: str, sent: str) -> bool:
    """Return whether a session has this sent id."""
    return session_id == sent or session_id.startswith(sent + _OWN)


def own_ids(sent: str) -> tuple[str, str]:
    """Return the bounds of ids of their own under a sent id: the first is included, the second is not."""
    return sent + _OWN, f"{sent}{_OWN[:-1]};"
