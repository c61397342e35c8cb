"""Tools by name: the model asks for ``book_ferry``, and the span that ran it may say ``Ferry-book_ferry``."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

_SEPARATOR = re.compile(r"[-./:\s]+|__")


def asked_name(run: str, asked: Container[str]) -> str:
    """The name out of ``asked`` that the tool ``run`` was asked for by: the same one, or one that ``run`` carries a
    prefix (``Ferry-book_ferry``) or suffix (``book_ferry.tool``) to; ``run`` itself if there is none."""
    return run if run in asked else next((name for name in _inside(run) if name in asked), run)


def same_tool(one: str, other: str) -> bool:
    """Whether two names are of the same tool, one of them perhaps with a prefix or suffix."""
    return one == other or asked_name(one, (other,)) == other or asked_name(other, (one,)) == one


def _inside(name: str) -> Iterator[str]:
    """Ends of a name after a separator, longest first, then its beginning before the first one."""
    found = list(_SEPARATOR.finditer(name))
    for separator in found:
        yield name[separator.end() :]
    if found:
        yield name[: found[0].start()]
