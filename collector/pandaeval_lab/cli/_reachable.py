"""Checks whether a server is reachable."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_WAIT_S = 2.0
_PORTS = {"http": 80, "https": 443}


def unreachable(address: str) -> str:
    """Return why a connection fails; ``""`` for success, a proxy, or no answer within two seconds."""
    try:
        url = urlsplit(address if "://" in address else f"http://{address}")
        if url.hostname is None or getproxies().keys() & {"http", "https", "all"}:
            return ""
        socket.create_connection((url.hostname, url.port or _PORTS.get(url.scheme, 443)), _WAIT_S).close()
    except TimeoutError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
    return ""
