"""Compares tool names, which may have a prefix or suffix."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

_SEPARATOR = re.compile(r"[-./:\s]+|__")
_SPELLING = re.compile(r"[^0-9a-zA-Z]+")


def requested_name(run: str, asked: Container[str]) -> str:
    """Return the name in ``asked`` for the executed tool ``run``, which may differ by prefix (``Ferry-book_ferry``) or
    suffix; else ``run``.
    """
    if run in asked:
        return run
    return next((name for name in _inside(run) if name in asked), run)


def same_tool(one: str, other: str) -> bool:
    """Return whether two names denote the same tool, despite a prefix or suffix."""
    return one == other or requested_name(one, (other,)) == other or requested_name(other, (one,)) == one


def same_mcp_tool(one: str, other: str) -> bool:
    """Return whether two names denote the same MCP tool, despite the server's name before or behind it."""
    one, other = (_SPELLING.sub("_", name.replace("@", "_mcp_")) for name in (one, other))
    short, long = sorted((one, other), key=len)
    return bool(short) and (long == short or long.endswith(f"_{short}") or long.startswith(f"{short}_mcp_"))


def _inside(name: str) -> Iterator[str]:
    found = list(_SEPARATOR.finditer(name))
    for separator in found:
        yield name[separator.end() :]
    if found:
        yield name[: found[0].start()]
