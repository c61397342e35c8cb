"""The addresses that a configuration sends to, and whether anybody takes a connection there."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pandaeval_collector.config import Config

_KEYS = re.compile(r"(^|_)(endpoint|forward_to|drain_to|brokers|api_base)$")
_PORTS = {"http": 80, "https": 443}


def places(config: Config) -> Iterator[tuple[str, str, str]]:
    """Area, key and ``host:port`` of each address that is set."""
    for key, value in _leaves(config.model_dump(mode="json"), ""):
        name = key.rpartition(".")[2]
        if not isinstance(value, str) or not value or not _KEYS.search(name):
            continue
        area = "judge" if key.startswith("judge.") else "sinks"
        for each in value.split(","):
            if where := _address(each.strip()):
                yield area, key, where


def setting(config: Config, key: str) -> Any:
    """One value, also of a section that an installed package brings; ``None`` where there is none."""
    return dict(_leaves(config.model_dump(mode="json"), "")).get(key)


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, key)
    else:
        yield key, value


def _address(value: str) -> str:
    try:
        parts = urlsplit(value if "//" in value else f"//{value}")
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.hostname}:{port}" if parts.hostname and port else ""


def reach(where: str, timeout: float) -> str:
    """Why no connection comes about; empty where one does. Nothing is sent."""
    host, _, port = where.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout):
            return ""
    except OSError as error:
        return str(error.strerror or error)
