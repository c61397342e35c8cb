"""How many connections each listener may have, out of the files that the process may open."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Protocol

_WANTED_FILES = 65_536
_GRPC_SHARE, _HTTP_SHARE, _HEALTH_CONNECTIONS = 0.5, 0.2, 64
_FEWEST = 16


def grpc_connections() -> int:
    """Returns the limit for OTLP over gRPC: half of the files that this process may open. Nobody can end its idle
    connections to make room, so it has more than HTTP; health checks, the store and exporters always find some."""
    return max(_FEWEST, int(_files() * _GRPC_SHARE))


def http_connections() -> int:
    """Returns the limit for OTLP over HTTP and the API: a fifth of the files that this process may open."""
    return max(_FEWEST, int(_files() * _HTTP_SHARE))


def health_connections() -> int:
    """Returns the limit for the listener of health checks."""
    return min(_HEALTH_CONNECTIONS, max(_FEWEST, _files() // 16))


def _files() -> int:
    """Returns how many files the process may open, after raising that limit if it may."""
    if sys.platform == "win32":
        return _WANTED_FILES  # there is no such limit
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # not allowed: the limit stays
        return soft
    return wanted


class Connection(Protocol):
    """One connection of a listener."""

    def drop(self) -> None:
        """Ends the connection at once."""
        ...


class Crowd:
    """The connections of one listener. Beyond ``limit`` the one that has been without a request for longest is dropped;
    a new one only where all others are being answered."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._waiting: OrderedDict[Connection, None] = OrderedDict()

    def came(self, connection: Connection) -> None:
        """Notes a new connection. It may be dropped before this returns."""
        self._count += 1
        self._waiting[connection] = None
        if self._count > self._limit:
            longest, _ = self._waiting.popitem(last=False)
            longest.drop()

    def busy(self, connection: Connection) -> None:
        """Notes that a connection has a request."""
        self._waiting.pop(connection, None)

    def waits(self, connection: Connection) -> None:
        """Notes that a connection was answered."""
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)

    def went(self, connection: Connection) -> None:
        """Notes that a connection is closed."""
        self._count -= 1
        self._waiting.pop(connection, None)
