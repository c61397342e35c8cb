"""Short descriptions of JSON schemas, for verdicts and tool parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided

_LONGEST = 400
_DEEPEST = 6
"""Maximum depth of nested schemas."""
STEP, ECHO = r"^(call|turn) [1-9][0-9]{0,5}$", r"^[0-9a-f]{8}$"
"""Patterns of our own answer fields, which the prompt describes in words."""
_WORDS = {STEP: '"call N" or "turn N"', ECHO: "text"}
_TYPES = {"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number"}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}",
    "minLength": "{} or more characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "format": "as {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "default": "{} if not given",
}


def field(name: str, schema: Any, whole: Mapping[str, Any], more: str = "", depth: int = 0) -> str:
    """Describe a field: values, ``more`` and description. ``whole``: the schema with definitions."""
    about = schema.get("description") if isinstance(schema, Mapping) else None
    description = f". {one_line(about).rstrip('.')}" if isinstance(about, str) and about.strip() else ""
    return f"{name}: {_kind(schema, whole, depth)}{more}{description}"


def signature(schema: Any, most: int = _LONGEST) -> str:
    """Describe a tool's parameters, ``""`` without any: sanitized, on one line, about ``most`` characters."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return ""
    return elided(one_line(neutral(f"({_fields(schema, schema, 0)})")), most)


def _fields(schema: Mapping[str, Any], whole: Mapping[str, Any], depth: int) -> str:
    required = schema.get("required")
    wanted = frozenset(map(str, required if isinstance(required, list) else ()))
    return "; ".join(
        field(str(name), each, whole, "" if str(name) in wanted else ", optional", depth + 1)
        for name, each in schema["properties"].items()
    )


def _kind(schema: Any, whole: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "anything"
    match schema:
        case {"$ref": str(name)}:
            places = (whole.get(each) for each in ("$defs", "definitions"))
            known = next((held for held in places if isinstance(held, Mapping)), {})
            return _kind(known.get(name.rpartition("/")[2]), whole, depth + 1)
        case {"pattern": str(pattern)} if pattern in _WORDS:
            return _WORDS[pattern]
        case {"enum": list(values)} if values:
            kind_text = " or ".join(map(_json, values))
        case {"const": value}:
            kind_text = _json(value)
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            kind_text = " or ".join(dict.fromkeys(_kind(each, whole, depth + 1) for each in kinds))
        case {"type": "array"}:
            kind_text = "a list"
        case {"properties": Mapping() as inside} if inside:
            kind_text = f"an object ({_fields(schema, whole, depth)})"
        case {"type": list(names)}:
            kind_text = " or ".join(_TYPES.get(str(each), str(each)) for each in names)
        case {"type": str(name)}:
            kind_text = _TYPES.get(name, name)
        case _:
            return "anything"
    if "minimum" in schema and "maximum" in schema:
        kind_text += f" from {_json(schema['minimum'])} to {_json(schema['maximum'])}"
        schema = {key: value for key, value in schema.items() if key not in ("minimum", "maximum")}
    kind_text += "".join(f", {words.format(_json(schema[key]))}" for key, words in _LIMITS.items() if key in schema)
    return f"{kind_text}, each {_kind(schema['items'], whole, depth + 1)}" if schema.get("items") else kind_text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
