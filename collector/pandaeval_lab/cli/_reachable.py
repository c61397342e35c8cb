"""Checks whether a server is reachable."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_WAIT_S = 2.0
_PORTS = {"http": 80, "https": 443}


def host_and_port(address: str) -> tuple[str, int] | None:
    """Return host and port of a URL or of ``host:port``, else ``None``. Raises ``ValueError``."""
    parts = urlsplit(address if "//" in address else f"//{address}")
    port = parts.port or _PORTS.get(parts.scheme)
    return (parts.hostname, port) if parts.hostname and port else None


def unreachable(address: str) -> str:
    """Return why a connection fails; ``""`` for success, a proxy, or no answer within two seconds."""
    try:
        place = host_and_port(address)
        if place is None or getproxies().keys() & {"http", "https", "all"}:
            return ""
        socket.create_connection(place, _WAIT_S).close()
    except TimeoutError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
    return ""
