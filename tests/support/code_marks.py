"""Marks names and values in generated pages as code."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = re.compile(
    r"(\b[a-z][\w.]*: (?:\{[^{}]*\}|null\b|false\b|trace\b|\d[\d.]*\d|SASL_SSL|[a-z]+/[\w.-]*\w)"  # key and value
    r"|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}"  # a map
    r"|\[\]"
    r"|pandaeval [a-z]+(?: --[a-z]+)?"
    r"|(?<![\w/])docs/[\w/.-]+\.md"
    r"|(?<![\w/])/[a-z]+\b"  # a path of a URL
    r"|(?<!\w)--[a-z-]+"
    r"|\b(?:null|true|false)\b"
    r"|\b[\w.]+(?::[A-Za-z][\w,]*)+(?<!,)"  # such as HOST:PORT
    r"|\b[a-z]+/[a-z]+-[\w.-]*\w"  # a model
    r"|(?<![\w/.:@-])[A-Za-z]\w*(?:[._]\w+)+)"  # a dotted name, or a name with underscores
)


def code_marked(text: str, values: Iterable[str] = ()) -> str:
    """Return ``text`` with backticks around names, and around ``values`` that begin a sentence or follow "With"."""
    parts = text.split("`")
    forms = "|".join(re.escape(value) for value in values)
    for place in range(0, len(parts), 2):
        part = _CODE.sub(r"`\1`", parts[place])
        if forms:
            part = re.sub(rf"(^|(?<=\. )|(?<=With ))({forms})(?![\w`])", r"\1`\2`", part)
        parts[place] = part
    return "`".join(parts)
