"""The parameters of a tool in a line: ``(flight: text, cabin: "economy" or "business", bags: integer, optional)``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pandaeval_collector.judge.neutral import elided, neutral, one_line

_MOST = 20
_ENUM = 8
_LONGEST = 400


def signature(schema: Any) -> str:
    """What a JSON schema says of the parameters of a tool, ``""`` where it says nothing. At most about 400
    characters, neutral and on one line: names and values in it are the trace's words."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return ""
    required = schema.get("required")
    wanted = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
    shown = [f"{name}: {_kind(each)}{'' if str(name) in wanted else ', optional'}" for name, each in _first(properties)]
    if len(properties) > _MOST:
        shown.append(f"… {len(properties) - _MOST} more")
    return elided(one_line(neutral(f"({'; '.join(shown)})")), _LONGEST)


def _first(properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(properties.items())[:_MOST]


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    match schema:
        case {"enum": list(values)} if values:
            more = ["…"] if len(values) > _ENUM else []
            return " or ".join([*(json.dumps(each, ensure_ascii=False, default=str) for each in values[:_ENUM]), *more])
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            return " or ".join(dict.fromkeys(_kind(each) for each in kinds[:_ENUM]))
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": list(names)}:
            return " or ".join(map(str, names[:_ENUM]))
        case {"type": str(name)}:
            return name if "format" not in schema else f"{name} ({schema['format']})"
    return "anything"
