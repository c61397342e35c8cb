"""Fills templates of request bodies and prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FIELD = re.compile(r"\{(\w+)\}")


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill ``{name}`` in the texts of a JSON value. A text that is only ``{name}`` becomes the value.

    In a list, a list of messages adds its items:

    >>> filled(["system", "{messages}", "turn {turn}"], {"messages": ["hi", "ho"], "turn": 1})
    ['system', 'hi', 'ho', 'turn 1']
    """
    if isinstance(template, str):
        whole = _FIELD.fullmatch(template)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _FIELD.sub(lambda found: str(values.get(found[1], found[0])), template)
    if isinstance(template, Mapping):
        return {name: filled(each, values) for name, each in template.items()}
    if not isinstance(template, list):
        return template
    items: list[Any] = []
    for each in template:
        value = filled(each, values)
        items += value if each == "{messages}" else [value]
    return items
