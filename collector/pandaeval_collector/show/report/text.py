"""Safe, bounded text of traces, and the page that shows it.

The page is one HTML file with scripts of ``assets/common`` and ``assets/file`` or ``assets/live``. The content security
policy allows only these scripts and styles by digest.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import orjson

from pandaeval_collector.base.untrusted.printable import UNSAFE_CLASS, clean, excerpt

_UNSAFE_JSON = re.compile(rf"\\\\|\\(?:[bfr]|u00(?:[01][0-9a-f]|7f))|{UNSAFE_CLASS}")
_DEEPEST = 6
_LONGEST_LIST = 100
_LEAST = 120
"""Characters that each text of a trace has at least."""

Cut = str | dict[str, Any]
"""A text as the page gets it: whole, or ``{"h": its beginning, "t": its end, "n": characters of the whole}``."""


def clean_json(document: bytes) -> bytes:
    """Make the texts of an orjson document safe to show."""
    return _UNSAFE_JSON.sub(_written_out, document.decode()).encode()


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON-ready copy without characters that hide or reorder text."""
    held: dict[str, Any] = orjson.loads(clean_json(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)))
    return held


def _written_out(match: re.Match[str]) -> str:
    found = match[0]
    if found == "\\\\":
        return found
    return f"\\{found}" if found[0] == "\\" else f"\\{clean(found)}"


def cut(text: str, room: int) -> Cut:
    """Return clean ``text`` if it fits in ``room`` characters, else its beginning (two thirds) and its end."""
    if len(text) <= room:
        return clean(text)
    head = room - room // 3
    return {"h": clean(text[:head]), "t": clean(text[len(text) - room + head :]), "n": len(text)}


def written(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY, default=str).decode()
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, numbers beyond 64 bits, keys that are no text
        return str(value)


def pruned(value: Any, room: int = 600, depth: int = 0) -> Any:
    """Return a value as bounded JSON, with marked cuts."""
    match value:
        case None | bool() | float():
            return value
        case int():
            return value if abs(value) < 1 << 53 else str(value)
        case str():
            return clean(value) if len(value) <= room else f"{clean(value[:room])}… ({len(value):,} characters)"
        case Mapping() if depth < _DEEPEST:
            entries = {
                clean(str(key))[:100]: pruned(held, room, depth + 1)
                for key, held in islice(value.items(), _LONGEST_LIST)
            }
            if len(value) > _LONGEST_LIST:
                entries["…"] = f"{len(value) - _LONGEST_LIST} more"
            return entries
        case Sequence() if depth < _DEEPEST:
            items = [pruned(held, room, depth + 1) for held in islice(value, _LONGEST_LIST)]
            if len(value) > _LONGEST_LIST:
                items.append(f"… {len(value) - _LONGEST_LIST} more")
            return items
        case _:
            return excerpt(str(value), room)


class TextPool:
    """Keeps a trace's distinct texts within ``room`` characters, most for the first."""

    def __init__(self, room: int) -> None:
        self._each, self._left = max(200, room // 4), room
        self._known: dict[str, int] = {}
        self.kept: list[Cut] = []

    def add(self, text: str) -> int:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = len(self.kept)
            room = max(_LEAST, min(self._each, self._left))
            self._left -= min(len(text), room)
            self.kept.append(cut(text, room))
        return known

    def add_optional(self, text: str | None) -> int | None:
        return None if text is None else self.add(text)


_LOADING = (
    "Loading …",
    "This page needs JavaScript from this collector. The same results as JSON:\n<code>/api/v1/sessions</code>.",
)


@cache
def live_shell() -> tuple[str, str]:
    icon = '\n<link rel="icon" href="data:,">'  # else browsers ask for one
    return filled_shell("live", _LOADING, head=icon, allowed=" connect-src 'self';")


def filled_shell(
    kind: str, loading: tuple[str, str], *, data: str = "", head: str = "", allowed: str = ""
) -> tuple[str, str]:
    """Return the page of ``assets/<kind>`` and its policy.

    ``loading``: texts while it loads, and without scripts. ``data``: elements before the scripts. ``allowed``:
    policy additions.
    """
    library, licence = _asset("common/vendor/uPlot.iife.min.js"), _asset("common/vendor/uPlot.LICENSE.txt")
    data += f"<!-- {licence} -->\n<script>{library}</script>"
    styles = "".join(_asset(name) for name in ("common/vendor/uPlot.min.css", *_names("css", kind)))
    own = "\n".join(_asset(name) for name in _names("js", kind))
    script = f'(() => {{"use strict";\n{own}\nstart();\n}})();\n'
    policy = (
        f"default-src 'none'; script-src {' '.join(_digest(each) for each in (library, script))}; "
        f"style-src {_digest(styles)}; img-src data:;{allowed} base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )
    parts = {"policy": policy, "styles": styles, "script": script, "data": data, "head": head}
    parts |= {"loading": loading[0], "noscript": loading[1]}
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], _asset("common/shell.html")), policy


def _names(ending: str, kind: str) -> list[str]:
    folders = (files(__package__).joinpath("assets", folder) for folder in ("common", kind))
    return [
        f"{folder.name}/{name}"
        for folder in folders
        for name in sorted(each.name for each in folder.iterdir() if each.name.endswith(f".{ending}"))
    ]


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
