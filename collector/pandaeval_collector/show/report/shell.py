"""The page without its data: one HTML text with everything in it, for a report's file and for the live page.

Both are drawn by the scripts of ``assets/common``; each has the source of its data, its first page and its lists beside
them (``assets/file``, ``assets/live``). The content security policy allows these scripts and style sheets by their
digests and nothing else, so text from a trace can neither run nor load anything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

_LOADING = (
    "Asking the collector …",
    "This page needs JavaScript, which runs from this collector alone. The same results for programs:\n"
    "<code>/api/v1/sessions</code>.",
)


@cache
def live_shell() -> tuple[str, str]:
    """Returns the live page, and its content security policy, which lets it send requests to its own server."""
    icon = '\n<link rel="icon" href="data:,">'  # else browsers ask for one
    return filled_shell("live", _LOADING, head=icon, allowed=" connect-src 'self';")


def filled_shell(
    kind: str, loading: tuple[str, str], *, data: str = "", head: str = "", allowed: str = ""
) -> tuple[str, str]:
    """Returns the page of ``assets/<kind>`` and its content security policy. ``loading``: what it says while it opens,
    and without scripts; ``data``: elements before its scripts; ``allowed``: more for the policy."""
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
    """Returns the paths of all scripts or style sheets of a page; their order does not matter (scripts only define)."""
    folders = (files(__package__).joinpath("assets", folder) for folder in ("common", kind))
    return [
        f"{folder.name}/{name}"
        for folder in folders
        for name in sorted(each.name for each in folder.iterdir() if each.name.endswith(f".{ending}"))
    ]


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Returns the digest of an inline element's text in the form of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
