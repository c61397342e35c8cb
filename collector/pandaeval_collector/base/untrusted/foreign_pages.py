"""Detects requests of foreign web pages, by DNS rebinding or from another origin."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

HOSTS_TOLD = (
    "this collector answers under the name localhost, under IP addresses and under the names in server.allowed_hosts; "
    "or protect it with server.token_env"
)
ORIGIN_TOLD = "a page of another origin may not change anything here (see server.allowed_hosts)"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s\[\]:@/?#\\]+))(?::[0-9]{1,5})?", re.ASCII)


def is_known_host(host: str, allowed: Collection[str]) -> bool:
    """Return whether a ``Host`` header is safe: an IP address, ``localhost``, or in ``allowed`` (lower case)."""
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    if found[1] is not None:
        return _is_address(found[1])
    name = found[2].rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or name in allowed or _is_address(name)


def is_own_origin(origins: Sequence[str], host: str, fetch_site: str | None, allowed: Collection[str]) -> bool:
    """Return whether a request comes from a program, a page of ``host``, or ``allowed``.

    ``fetch_site``: header ``Sec-Fetch-Site``.
    """
    if fetch_site not in (None, "same-origin", "none"):
        return False
    if not origins:
        return True
    try:
        origin = urlsplit(origins[0])
        name = origin.hostname or ""
    except ValueError:
        return False
    return len(origins) == 1 and name != "" and (origin.netloc.lower() == host.lower() or name in allowed)


def is_loopback(host: str) -> bool:
    """Return whether the host can only be this machine. ``localhost`` is the only such name."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
