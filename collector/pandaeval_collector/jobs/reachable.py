"""Whether anybody listens at the address of a judge's server, before seconds are spent on starting its process."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_WAIT_S = 2.0
_PORTS = {"http": 80, "https": 443}


def unreachable(api_base: str) -> str:
    """Why nobody answers at a URL, in a few words; ``""`` where somebody does, where it takes more than two seconds to
    find out, or where a proxy is between."""
    url = urlsplit(api_base if "://" in api_base else f"http://{api_base}")
    if url.hostname is None or getproxies().keys() & {"http", "https", "all"}:
        return ""
    try:
        socket.create_connection((url.hostname, url.port or _PORTS.get(url.scheme, 443)), _WAIT_S).close()
    except TimeoutError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""
