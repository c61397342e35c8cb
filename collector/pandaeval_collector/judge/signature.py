"""The parameters of a tool in a line: ``(flight: text, cabin: "economy" or "business", bags: integer, optional)``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pandaeval_collector.judge.neutral import elided, neutral, one_line

_LONGEST = 400
_DEEPEST = 6
"""Schemas within schemas that are read."""


def signature(schema: Any, most: int = _LONGEST) -> str:
    """What a JSON schema says of the parameters of a tool, ``""`` where it says nothing. At most about ``most``
    characters, neutral and on one line: names and values in it are the trace's words."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return ""
    required = schema.get("required")
    wanted = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
    shown = [f"{name}: {_kind(each)}{'' if str(name) in wanted else ', optional'}" for name, each in properties.items()]
    return elided(one_line(neutral(f"({'; '.join(shown)})")), most)


def _kind(schema: Any, depth: int = 0) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "anything"
    match schema:
        case {"enum": list(values)} if values:
            return " or ".join(json.dumps(each, ensure_ascii=False, default=str) for each in values)
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            return " or ".join(dict.fromkeys(_kind(each, depth + 1) for each in kinds))
        case {"type": "array", "items": items}:
            return f"list of {_kind(items, depth + 1)}"
        case {"properties": Mapping() as inside} if inside:
            return f"object ({'; '.join(f'{name}: {_kind(each, depth + 1)}' for name, each in inside.items())})"
        case {"type": list(names)}:
            return " or ".join(map(str, names))
        case {"type": str(name)}:
            return name if "format" not in schema else f"{name} ({schema['format']})"
    return "anything"
